"""The subject of a certificate as text: what Java's X500Principal.getName() says (RFC 2253).

That is how Kafka names the owner of a certificate, and what `ssl.principal.mapping.rules` are written for.
A certificate is read as far as its subject, with lengths checked; what OpenSSL has verified is well formed.
"""

from __future__ import annotations

from collections.abc import Iterator

_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0
_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ENCODINGS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1C: "utf-32-be", 0x1E: "utf-16-be"}
_ESCAPED = ',+<>;"\\'


def subject_of(certificate: bytes) -> str:
    """Of a certificate in DER. Raises ValueError."""
    (_, whole), *_ = _elements(certificate)
    (_, signed), *_ = _elements(whole)
    fields = [content for tag, content in _elements(signed) if tag != _VERSION]
    # Serial number, algorithm, issuer, validity, subject.
    return _name(fields[4])


def _name(sequence: bytes) -> str:
    """The last part first."""
    parts = ["+".join(_attribute(content) for _, content in _elements(part)) for _, part in _elements(sequence)]
    return ",".join(reversed(parts))


def _attribute(content: bytes) -> str:
    (_, oid), (tag, value) = _elements(content)
    dotted = _oid(oid)
    name = _NAMES.get(dotted)
    if name is None or tag not in _ENCODINGS:
        return f"{name or dotted}=#{_encoded(tag, value).hex()}"
    return f"{name}={_escaped(value.decode(_ENCODINGS[tag]))}"


def _escaped(text: str) -> str:
    shown = "".join(f"\\{char}" if char in _ESCAPED else char for char in text)
    if shown.startswith(("#", " ")):
        shown = "\\" + shown
    if shown.endswith(" ") and len(shown) > 1:
        shown = shown[:-1] + "\\ "
    return shown


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        tag, size, start = data[at], data[at + 1], at + 2
        if size & 0x80:
            count = size & 0x7F
            if not 0 < count <= 4:
                raise ValueError("not a certificate: the length of a field is missing")
            size = int.from_bytes(data[start : start + count], "big")
            start += count
        if start + size > len(data):
            raise ValueError("not a certificate: a field is longer than what holds it")
        yield tag, data[start : start + size]
        at = start + size


def _encoded(tag: int, value: bytes) -> bytes:
    if len(value) < 0x80:
        return bytes((tag, len(value))) + value
    size = len(value).to_bytes((len(value).bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(size))) + size + value


def _oid(data: bytes) -> str:
    numbers, number = [], 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
