"""Reading what names a store."""

import re


def without_password(url: str) -> str:
    """The URL as it may be shown, whatever is wrong with it."""
    found = re.match(r"([\w+.-]+:)?//", url)
    scheme = found[0] if found else ""
    rest = url.removeprefix(scheme)
    credentials, at, place = rest.rpartition("@")
    if ":" in credentials:
        credentials = credentials.partition(":")[0] + ":***"
    return re.sub(r"(password=)[^&]*", r"\1***", f"{scheme}{credentials}{at}{place}")
