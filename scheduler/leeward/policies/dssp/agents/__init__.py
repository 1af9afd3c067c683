"""The agents of domains and providers: messages, events and time in; messages and effects out (core/members.py)."""
