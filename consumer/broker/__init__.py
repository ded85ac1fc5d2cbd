"""The only room that imports aio_pika: sessions, declaring, deliveries, publishing."""
