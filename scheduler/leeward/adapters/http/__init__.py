"""The service over HTTP: reports, live events and acts. Imported only by a service that was asked for it."""
