"""Every Kafka message by name: `from ottla.protocol.messages import MetadataResponse`.

Classes are built when first asked for; `messages.pyi` tells type checkers their fields.
"""

from ottla.protocol.codec import Message, message_class


def __getattr__(name: str) -> type[Message]:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return message_class(name)
    except KeyError as error:
        raise AttributeError(str(error)) from None
