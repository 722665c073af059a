"""URLs of stores."""

import re


def without_password(url: str) -> str:
    """The URL without its password, also if the URL is invalid."""
    found = re.match(r"([\w+.-]+:)?//", url)
    scheme = found[0] if found else ""
    rest = url.removeprefix(scheme)
    credentials, at, place = rest.rpartition("@")
    if ":" in credentials:
        credentials = credentials.partition(":")[0] + ":***"
    return re.sub(r"(password=)[^&]*", r"\1***", f"{scheme}{credentials}{at}{place}")
