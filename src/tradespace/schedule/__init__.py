"""Pipeline schedules: in-flight counts, closed forms, and the event-by-event timeline that checks them."""
