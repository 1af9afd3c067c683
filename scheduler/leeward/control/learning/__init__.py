"""Learns on line, from measurements and from reconfigurations that are over: values of `core/learnt.py`. Pure."""
