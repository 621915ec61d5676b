"""Writes signing.json beside this file: requests in every signing scheme, each with the right result.

Nothing here uses netopt. netopt1, salted-md5 and sealed-key are implemented a second time from
docs/signing.md. http-message-signatures signs in RFC 9421, and botocore in SigV4. The examples of AWS and of
RFC 9421 are copied as they are published.

    python3 -m venv venv && venv/bin/pip install http-message-signatures botocore requests
    venv/bin/python Tests/Vectors/generate.py
"""
import base64, datetime, hashlib, hmac, json, pathlib, urllib.parse

HERE = pathlib.Path(__file__).parent
# The time of signing and of verifying, in seconds since 1970, unless a case has another one.
NOW = 1_700_000_000
# The nonce of the signatures in netopt1.
NONCE = "AAECAwQFBgcICQoLDA0ODw"
# The secret and the salt of the key app1.v2.
SECRET, SALT = "netopt-test-secret", "salt-2024"
# The secret of the platform keys of sealed-key.
PLATFORM = "0123456789abcdef0123456789abcdef"
# The content of signing.json: the cases, and the key rings by name.
cases, rings = [], {}


def add(name, scheme, action, line, expect, ring="main", **flags):
    """Adds a case. `action` is "sign" or "verify", `line` the request as netopt's option --jsonl reads it,
    and `expect` the properties that the result must have. `flags` are allow_weak, explain and algorithm.
    """
    cases.append({"name": name, "scheme": scheme, "ring": ring, "action": action, **flags,
                  "line": {"scheme": scheme, **line}, "expect": expect})


def nonce(n):
    """The nonce whose 16 bytes are the number `n`."""
    return base64.urlsafe_b64encode(n.to_bytes(16, "big")).decode().rstrip("=")


# netopt1 ------------------------------------------------------------------------------------------------------------

def enc(raw, safe="-._~"):
    """Percent-encodes bytes or a text, apart from letters, digits and `safe`."""
    return urllib.parse.quote(raw, safe=safe)


def pairs(query):
    """The decoded keys and values of a query, in order."""
    out = []
    for piece in query.split("&") if query else []:
        k, _, v = piece.partition("=")
        out.append((urllib.parse.unquote_to_bytes(k.replace("+", " ")), urllib.parse.unquote_to_bytes(v.replace("+", " "))))
    return out


def authority(url):
    """The host of a split URL in lower case, with its port unless that is the default port."""
    default = {"https": ":443", "http": ":80"}[url.scheme]
    return url.netloc.lower().removesuffix(default)


# The fields that netopt1 signs when a request has them.
USUAL = ("content-encoding", "content-type", "idempotency-key")


def netopt1(line, secret=SECRET, salt=SALT, key="app1.v2", ts=NOW, nonce_=NONCE, names=None, m=()):
    """Signs a request in netopt1. Returns the string to sign, the signature and the Authorization field.

    `names` are the signed fields; None means those of `USUAL` that the request has. `m` are the mistakes that
    the signer makes, by their codes in the verifier's report. One has no code: with `secret-as-key`, the
    secret itself is the key of the MAC.
    """
    url = urllib.parse.urlsplit(line["url"])
    headers = {}
    for k, v in line.get("headers", []):
        headers.setdefault(k.lower(), []).append(v.strip(" \t"))
    if names is None:
        names = [n for n in USUAL if n in headers]
    body = line.get("body", "").encode()
    if "body_base64" in line:
        body = base64.b64decode(line["body_base64"])
    if "body-left-out" in m: body = b""
    if "body-line-end" in m: body += b"\n"
    if "body-compact" in m: body = json.dumps(json.loads(body), separators=(",", ":")).encode()
    if "body-sorted" in m: body = json.dumps(json.loads(body), separators=(",", ":"), sort_keys=True).encode()
    if "body-spaced" in m: body = json.dumps(json.loads(body)).encode()
    if "body-sorted-and-spaced" in m: body = json.dumps(json.loads(body), sort_keys=True).encode()
    path = url.path or "/"
    if "path-not-normalised" not in m:
        if "path-normalised" in m:
            kept = []
            for s in path.split("/"):
                if s == "..": kept = kept[:-1]
                elif s and s != ".": kept.append(s)
            path = "/" + "/".join(kept) + ("/" if path.endswith("/") and kept else "")
        path = "/".join(enc(urllib.parse.unquote_to_bytes(s)) for s in path.split("/"))
        if "path-encoded-twice" in m: path = path.replace("%", "%25")
    def e(raw):
        """Encodes a key or a value of the query, with the mistakes that concern the encoding."""
        if "not-encoded" in m: return raw.decode()
        text = enc(raw)
        if "plus-for-space" in m: text = text.replace("%20", "+")
        if "encoded-twice" in m: text = text.replace("%", "%25")
        return text
    ps = pairs(url.query)
    if "empties-dropped" in m: ps = [p for p in ps if p[1]]
    ps = [(e(k), e(v)) for k, v in ps]
    if "params-not-sorted" in m: pass
    elif "duplicate-order" in m: ps.sort(key=lambda p: (p[0].encode(), p[1].encode()))
    else: ps.sort(key=lambda p: p[0].encode())
    params = "" if "query-left-out" in m else "&".join(k + "=" + v for k, v in ps)
    if "lower-case-hex" in m:
        lower = lambda t: "%".join([t.split("%")[0]] + [p[:2].lower() + p[2:] for p in t.split("%")[1:]])
        path, params = lower(path), lower(params)
    host = url.netloc.lower() if "port-kept" in m else authority(url)
    lines = ["NETOPT1-HMAC-SHA256", key, str(ts) + ("000" if "time-in-milliseconds" in m else ""), nonce_,
             line["method"].lower() if "method-lower-case" in m else line["method"], host, path, params, ";".join(names)]
    lines += [n + ":" + ", ".join(headers.get(n, [])) for n in names]
    lines.append(hashlib.sha256(body).hexdigest())
    string = ("\r\n" if "carriage-returns" in m else "\n").join(lines) + ("\n" if "trailing-newline" in m else "")
    k = hmac.digest(secret.encode(), b"netopt1\n" + salt.encode(), "sha256")
    if "secret-as-key" in m: k = secret.encode()
    sig = hmac.digest(k, string.encode(), "sha256").hex()
    auth = f"NETOPT1-HMAC-SHA256 keyid={key},ts={ts},nonce={nonce_},headers={';'.join(names)},sig={sig}"
    return string, sig, auth


def signed(line, **how):
    """The request with a netopt1 signature, to verify at `NOW`. `how` are the arguments of `netopt1`."""
    return {**line, "headers": line.get("headers", []) + [["Authorization", netopt1(line, **how)[2]]], "now": NOW}


# The example request of docs/signing.md.
GOLDEN = {"method": "POST", "url": "https://API.Example.com:443/user/search?q=a%20b%2Bc&tag=%C3%A9&tag=x&empty=",
          "headers": [["content-type", "application/json"]], "body": '{"hello": "world"}'}
# The fields of a request with a JSON body.
J = [["Content-Type", "application/json"]]
# The requests that every implementation of netopt1 must sign and accept, by what is special about them.
REQUESTS = {
    "golden": GOLDEN,
    "get": {"method": "GET", "url": "https://api.example.com/"},
    "no path": {"method": "GET", "url": "https://api.example.com"},
    "plain http, default port": {"method": "GET", "url": "http://api.example.com:80/x"},
    "other port": {"method": "GET", "url": "https://api.example.com:8443/x"},
    "https on port 80": {"method": "GET", "url": "https://api.example.com:80/x"},
    "ipv6": {"method": "GET", "url": "https://[2001:db8::7]:443/x"},
    "plus is a space": {"method": "GET", "url": "https://api.example.com/s?q=a+b"},
    "bare key": {"method": "GET", "url": "https://api.example.com/s?b&a&a=&c=%26%3D"},
    "duplicates": {"method": "GET", "url": "https://api.example.com/s?t=b&t=a&t=&t=a"},
    "reserved bytes": {"method": "GET", "url": "https://api.example.com/s?k=!*'();:@/?,[]~-._"},
    "utf-8, raw": {"method": "GET", "url": "https://api.example.com/é/日本?ключ=значение"},
    "utf-8, encoded": {"method": "GET", "url": "https://api.example.com/%C3%A9/%e6%97%a5?k=%f0%9f%98%80"},
    "slashes and dots": {"method": "GET", "url": "https://api.example.com//a/./b/../c//"},
    "encoded slash": {"method": "GET", "url": "https://api.example.com/a%2Fb/c%2fd"},
    "space in the path": {"method": "GET", "url": "https://api.example.com/a b?c d=e f"},
    "binary body": {"method": "PUT", "url": "https://api.example.com/blob", "body_base64": base64.b64encode(bytes(range(256))).decode()},
    "repeated and padded fields": {"method": "POST", "url": "https://api.example.com/x", "body": "x",
                                   "headers": [["Content-Type", " text/plain "], ["IDEMPOTENCY-KEY", "k-1"], ["content-encoding", "gzip"], ["Content-Encoding", "br"]]},
    "delete": {"method": "DELETE", "url": "https://api.example.com/item/7", "headers": [["Idempotency-Key", "7"]]},
}
for label, line in REQUESTS.items():
    string, sig, auth = netopt1(line)
    add(f"netopt1 signs: {label}", "netopt1", "sign", {**line, "key_id": "app1.v2", "now": NOW, "nonce": NONCE},
        {"string_to_sign": string, "signature": sig, "headers": [["Authorization", auth]]})
    add(f"netopt1 accepts: {label}", "netopt1", "verify", signed(line), {"valid": True, "reason": "ok", "assurance": "strong"})
# A request with a field that is signed only when its name is in the option `headers`.
more = {**GOLDEN, "headers": J + [["X-Trace", "7"], ["x-trace", " 8"]]}
add("netopt1 signs named fields", "netopt1", "sign", {**more, "key_id": "app1.v2", "now": NOW, "nonce": NONCE, "options": {"headers": ["X-Trace", "content-type"]}},
    {"signature": netopt1(more, names=["content-type", "x-trace"])[1]})
add("netopt1 accepts named fields", "netopt1", "verify", {**signed(more, names=["content-type", "x-trace"]), "options": {"headers": ["x-trace"]}}, {"valid": True, "reason": "ok"})
add("netopt1 accepts the edge of the window", "netopt1", "verify", {**signed(GOLDEN), "now": NOW + 300}, {"valid": True, "reason": "ok"})

# The example request with its right signature. The cases below change one thing in it.
good = signed(GOLDEN)
def refuse(name, line, reason, **flags):
    """Adds a case in which the verifier refuses a request in netopt1, for a reason."""
    add(f"netopt1 refuses: {name}", "netopt1", "verify", line, {"valid": False, "reason": reason}, **flags)
# The example request with other parts. The signature stays as it is.
def changed(**parts): return {**good, **parts}
def reauth(old, new):
    """The example request with one text in its Authorization field replaced by another."""
    return {**good, "headers": [[k, v.replace(old, new) if k == "Authorization" else v] for k, v in good["headers"]]}
refuse("another method", changed(method="PUT"), "signature-mismatch")
refuse("method in another case", changed(method="Post"), "signature-mismatch")
refuse("another host", changed(url=good["url"].replace("API", "APP")), "signature-mismatch")
refuse("another port", changed(url=good["url"].replace(":443", ":444")), "signature-mismatch")
refuse("another path", changed(url=good["url"].replace("search", "searcx")), "signature-mismatch")
refuse("a slash more", changed(url=good["url"].replace("search", "search/")), "signature-mismatch")
refuse("another value", changed(url=good["url"].replace("tag=x", "tag=y")), "signature-mismatch")
refuse("values of one key in another order", changed(url=good["url"].replace("tag=%C3%A9&tag=x", "tag=x&tag=%C3%A9")), "signature-mismatch")
refuse("a % without digits in the query", changed(url=good["url"] + "&z=%zz"), "malformed-request")
refuse("a % at the end of the query", changed(url=good["url"] + "&z=%4"), "malformed-request")
refuse("a % without digits in the path", changed(url=good["url"].replace("search", "search%")), "malformed-request")
refuse("a raw # behind the query", changed(url=good["url"] + "#&role=admin"), "malformed-request")
refuse("a raw # in the path", changed(url=good["url"].replace("search", "search#")), "malformed-request")
refuse("a raw # where %23 would be", changed(url=good["url"].replace("q=a", "q=#a")), "malformed-request")
refuse("a raw backslash in the path", changed(url=good["url"].replace("/search", "\\search")), "malformed-request")
refuse("a raw backslash in the query", changed(url=good["url"] + "\\"), "malformed-request")
refuse("a parameter more", changed(url=good["url"] + "&z="), "signature-mismatch")
refuse("an empty piece more", changed(url=good["url"] + "&"), "signature-mismatch")
refuse("a duplicate less", changed(url=good["url"].replace("&tag=x", "")), "signature-mismatch")
refuse("another field value", changed(headers=[["content-type", "text/plain"], good["headers"][1]]), "signature-mismatch")
refuse("another body", changed(body='{"hello":"world"}'), "signature-mismatch")
refuse("no body", changed(body=""), "signature-mismatch")
refuse("a field that is signed is gone", changed(headers=[good["headers"][1]]), "missing-field")
refuse("a field that is not signed", changed(headers=good["headers"] + [["Idempotency-Key", "1"]]), "not-covered")
refuse("named field is not signed", {**good, "headers": good["headers"] + [["x-trace", "1"]], "options": {"headers": ["content-type", "x-trace"]}}, "not-covered")
refuse("another time", reauth(f"ts={NOW}", f"ts={NOW + 1}"), "signature-mismatch")
refuse("another nonce", reauth(NONCE, nonce(5)), "signature-mismatch")
refuse("another key", reauth("app1.v2", "app1.v1"), "signature-mismatch")
refuse("unknown key", reauth("app1.v2", "app9.v1"), "unknown-key")
refuse("another signature", reauth("sig=34", "sig=35"), "signature-mismatch")
refuse("upper-case signature", reauth("sig=34aa", "sig=34AA"), "malformed-signature")
refuse("short signature", reauth("sig=34", "sig="), "malformed-signature")
refuse("leading zero in ts", reauth(f"ts={NOW}", f"ts=0{NOW}"), "malformed-signature")
refuse("ts with a sign", reauth(f"ts={NOW}", f"ts=+{NOW}"), "malformed-signature")
refuse("short nonce", reauth(NONCE, NONCE[:-1]), "malformed-signature")
refuse("nonce of 22 characters that no 16 bytes have", reauth(NONCE, NONCE[:-1] + "x"), "malformed-signature")
refuse("key id with a slash", reauth("app1.v2", "app1/v2"), "malformed-signature")
refuse("names not sorted", reauth("headers=content-type", "headers=x;content-type"), "malformed-signature")
refuse("name twice", reauth("headers=content-type", "headers=content-type;content-type"), "malformed-signature")
refuse("name in upper case", reauth("headers=content-type", "headers=Content-Type"), "malformed-signature")
refuse("parameter twice", reauth(",sig=", ",ts=1,sig="), "malformed-signature")
refuse("parameter missing", reauth("headers=content-type,", ""), "malformed-signature")
refuse("unknown parameter", reauth(",sig=", ",x=1,sig="), "malformed-signature")
refuse("no signature", GOLDEN | {"now": NOW}, "no-signature")
refuse("other authorization", {**GOLDEN, "now": NOW, "headers": [["Authorization", "Bearer x"]]}, "no-signature")
refuse("two signatures", changed(headers=good["headers"] + [good["headers"][1]]), "malformed-signature")
refuse("too old", {**good, "now": NOW + 301}, "too-old")
refuse("from the future", {**good, "now": NOW - 301}, "from-the-future")
for key, reason in [("expired", "key-expired"), ("early", "key-not-yet-valid"), ("scoped", "out-of-scope"), ("aws-only", "scheme-not-allowed")]:
    refuse(f"key {key}", signed(GOLDEN, key=key), reason)
scoped = {"method": "GET", "url": "https://a.example.com/public/x"}
add("netopt1 accepts within the scope", "netopt1", "verify", signed(scoped, key="scoped"), {"valid": True, "reason": "ok"})
refuse("beside the path of the scope", signed({**scoped, "url": "https://a.example.com/publicity"}, key="scoped"), "out-of-scope")
refuse("out of the scope by dots", signed({**scoped, "url": "https://a.example.com/public/%2e%2e/x"}, key="scoped"), "out-of-scope")
refuse("body that is not that of Content-Digest", signed({**GOLDEN, "headers": J + [["Content-Digest", "sha-256=:" + base64.b64encode(hashlib.sha256(b"x").digest()).decode() + ":"]]}), "body-mismatch")
for name, parts in {"bad url": {"url": "nowhere"}, "method with a space": {"method": "GE T"}, "NUL in the url": {"url": "https://api.example.com/\0"},
                    "NUL in a field": {"headers": [["X", "a\0b"]]}, "line end in a field": {"headers": [["X", "a\nAuthorization: b"]]},
                    "odd field name": {"headers": [["X Y", "a"]]}, "bad base64": {"body_base64": "****", "body": None},
                    "no host": {"url": "https:///x"}, "user in the url": {"url": "https://u@api.example.com/"}}.items():
    line = {**good, **parts}
    line = {k: v for k, v in line.items() if v is not None}
    refuse(name, line, "malformed-request")

# Near misses: the signer made a mistake, and the verifier must name it. In this request, each mistake of
# `ALL` changes the signature.
MISS = {"method": "POST", "url": "https://API.example.com:443/a%2fb/./c?q=a%20b&tag=%C3%A9&tag=x&empty=&a=1",
        "headers": J, "body": '{"b": 1,  "a": [1, 2.50, "x"]}'}
# The mistakes that `netopt1` makes with `MISS`.
ALL = ["plus-for-space", "lower-case-hex", "empties-dropped", "encoded-twice", "not-encoded", "trailing-newline", "carriage-returns", "port-kept",
       "path-not-normalised", "path-normalised", "path-encoded-twice", "method-lower-case", "query-left-out", "params-not-sorted",
       "time-in-milliseconds", "body-left-out", "body-line-end"]
def miss(code, line):
    """Adds a case in which the verifier refuses a request in netopt1 and names the mistake `code`."""
    add(f"netopt1 names: {code}", "netopt1", "verify", line, {"valid": False, "reason": "signature-mismatch", "near_miss": code}, explain=True)
for code in ALL: miss(code, signed(MISS, m=(code,)))
miss("duplicate-order", signed({**MISS, "url": "https://api.example.com/?t=b&t=a"}, m=("duplicate-order",)))
# A request with a body that Python's json writes without a change of its numbers.
BODY = {**MISS, "body": '{"b": 1,  "a": [1, 2, "x"]}'}
for code in ["body-compact", "body-sorted", "body-spaced", "body-sorted-and-spaced"]: miss(code, signed(BODY, m=(code,)))
miss("older-key-version", signed(MISS, secret="older-secret", salt="salt-2023"))
# The request with another signature in its Authorization field.
def resigned(line, sig): return {**line, "headers": [[k, v.rsplit("=", 1)[0] + "=" + sig if k == "Authorization" else v] for k, v in line["headers"]]}
# The signature with the older version of the key.
older = netopt1(MISS, secret="older-secret", salt="salt-2023", key="app1.v1")[1]
miss("older-key-version", resigned(signed(MISS), older))
miss("wrong-salt", signed(MISS, salt="salt-2023"))
miss("wrong-scheme", resigned(signed(MISS), hashlib.sha256(SECRET.encode() + netopt1(MISS)[0].encode()).hexdigest()))
miss("wrong-salt", signed(MISS, salt=""))
miss("wrong-salt", signed(MISS, m=("secret-as-key",)))
miss("plus-for-space+port-kept", signed(MISS, m=("plus-for-space", "port-kept")))
miss("body-compact+trailing-newline", signed(BODY, m=("body-compact", "trailing-newline")))
miss("empties-dropped+wrong-salt", signed(MISS, salt="", m=("empties-dropped",)))

# salted-md5 -----------------------------------------------------------------------------------------------------------

def salted(line, secret="s3cret", salt="pepper", o={}):
    """The signature of a request in salted-md5. `o` are the options of the scheme."""
    url = urllib.parse.urlsplit(line["url"])
    h = lambda raw: hashlib.new(o.get("hash", "md5"), raw).hexdigest().encode()
    api = o.get("api", url.path[1:]).encode()
    ps = [(k, v) for k, v in pairs(url.query) if v or o.get("keep_empty")]
    if o.get("encode"): ps = [(enc(k).encode(), enc(v).encode()) for k, v in ps]
    p = b"&".join(sorted(k + b"=" + v for k, v in ps))
    digest = h(secret.encode() + api + p if o.get("secret", "prefix") == "prefix" else api + p + secret.encode())
    for _ in range(o.get("rounds", 2) - 1):
        digest = h(digest + salt.encode() if o.get("salt", "suffix") == "suffix" else salt.encode() + digest)
    return digest.decode()

# The example request of salted-md5.
OLD = {"method": "GET", "url": "https://api.example.com/user/search?q=a%20b&page=1&empty="}
assert salted(OLD) == "0faad350a8983f8bd1d1e919fad4d3cf"
assert salted(OLD, o={"rounds": 1}) == "031e668114520f456dbd5c4a793b264a"
for o in [{}, {"hash": "sha1"}, {"hash": "sha256"}, {"rounds": 1}, {"rounds": 3}, {"secret": "suffix"}, {"salt": "prefix"}, {"keep_empty": True},
          {"encode": True}, {"api": "search.v1"}, {"hash": "sha256", "rounds": 5, "secret": "suffix", "salt": "prefix", "keep_empty": True, "encode": True}]:
    text = json.dumps(o)
    line = {**OLD, "options": o, "now": NOW}
    add(f"salted-md5 signs {text}", "salted-md5", "sign", {**line, "key_id": "old"}, {"signature": salted(OLD, o=o), "headers": [["X-Netopt-Key", "old"], ["X-Netopt-Sig", salted(OLD, o=o)]]}, allow_weak=True)
    add(f"salted-md5 accepts {text}", "salted-md5", "verify", {**line, "headers": [["X-Netopt-Key", "old"], ["X-Netopt-Sig", salted(OLD, o=o)]]}, {"valid": True, "reason": "ok", "assurance": "weak"}, allow_weak=True)
# The example request with a signature in salted-md5, for the verifier.
def old(sig=salted(OLD), key="old", **parts): return {**OLD, "headers": [["X-Netopt-Key", key], ["X-Netopt-Sig", sig]], "now": NOW, **parts}
# Adds a case for the verifier in salted-md5, by default with the permission to accept weak schemes.
weak = lambda name, line, expect, **f: add(f"salted-md5 {name}", "salted-md5", "verify", line, expect, **{"allow_weak": True, **f})
weak("refuses without leave", old(), {"valid": False, "reason": "weak-scheme"}, allow_weak=False)
weak("refuses a key that is not legacy", old(key="modern"), {"valid": False, "reason": "key-not-legacy"})
weak("refuses another parameter", old(url=OLD["url"] + "&x=1"), {"valid": False, "reason": "signature-mismatch"})
weak("refuses another path", old(url=OLD["url"].replace("user", "users")), {"valid": False, "reason": "signature-mismatch"})
weak("refuses an unknown key", old(key="nobody"), {"valid": False, "reason": "unknown-key"})
weak("refuses odd digits", old(sig="zz"), {"valid": False, "reason": "malformed-signature"})
weak("cannot see an empty parameter more", old(url=OLD["url"] + "&zz="), {"valid": True, "reason": "ok", "assurance": "weak"})
weak("cannot see another body", old(body="x", method="POST"), {"valid": True, "reason": "ok", "assurance": "weak"})
# A request with one parameter, whose signature is also that of a request with two parameters: salted-md5 does
# not encode values.
clash = "https://api.example.com/pay?to=bob%26zamount%3D1"
weak("cannot tell a value from two parameters", old(url="https://api.example.com/pay?to=bob&zamount=1", sig=salted({"url": clash})), {"valid": True, "reason": "ok", "assurance": "weak"})
weak("names the hash", old(sig=salted(OLD, o={"hash": "sha1"})), {"valid": False, "reason": "signature-mismatch", "near_miss": "wrong-scheme"}, explain=True)
weak("names the salt", old(sig=salted(OLD, salt="")), {"valid": False, "reason": "signature-mismatch", "near_miss": "wrong-salt"}, explain=True)

# sealed-key -----------------------------------------------------------------------------------------------------------

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

def sealed(line, api, platform="platform.v1", key=PLATFORM, own="callers-own-key", n=b"\0" * 11 + b"\1"):
    """The caller's key `own`, sealed for a request and an API under the platform key `key` with the id
    `platform`. `n` is the nonce of AES-GCM.
    """
    url = urllib.parse.urlsplit(line["url"])
    data = f"{line['method']}\n{authority(url)}\n{api}".encode()
    blob = bytes([1, len(platform)]) + platform.encode() + n + AESGCM(key.encode()).encrypt(n, own.encode(), data)
    return base64.urlsafe_b64encode(blob).decode().rstrip("=")

# The default nonce of `sealed`, as the signer's option takes it.
SEAL_NONCE = base64.urlsafe_b64encode(b"\0" * 11 + b"\1").decode()
# The request of sealed-key around netopt1, its netopt1 signature with the caller's key, and the fields that
# carry the sealed key and the signature.
S = {"method": "POST", "url": "https://api.example.com/user/search?q=1", "headers": J, "body": "{}"}
inner = netopt1(S, secret="callers-own-key", salt="platform-salt", key="caller")
strong_headers = [["X-Netopt-Sealed", sealed(S, "/user/search")], ["Authorization", inner[2]]]
add("sealed-key signs around netopt1", "sealed-key", "sign", {**S, "key_id": "caller", "now": NOW, "nonce": NONCE, "options": {"platform_key_id": "platform.v1", "seal_nonce": SEAL_NONCE}}, {"signature": inner[1], "headers": strong_headers})
def seal(name, expect, line=S, headers=strong_headers, **f):
    """Adds a case for the verifier in sealed-key. `headers` are the fields of the sealed key and the
    signature; `extra` in `f` are further properties of the request.
    """
    add(f"sealed-key {name}", "sealed-key", "verify", {**line, "headers": line.get("headers", []) + headers, "now": NOW, **f.pop("extra", {})}, expect, **f)
seal("accepts around netopt1", {"valid": True, "reason": "ok", "assurance": "strong"})
seal("refuses another method", {"valid": False, "reason": "signature-mismatch"}, {**S, "method": "PUT"})
seal("refuses another path", {"valid": False, "reason": "signature-mismatch"}, {**S, "url": S["url"].replace("user", "usex")})
seal("refuses another body", {"valid": False, "reason": "signature-mismatch"}, {**S, "body": "[]"})
seal("refuses a key sealed under another", {"valid": False, "reason": "signature-mismatch"}, headers=[["X-Netopt-Sealed", sealed(S, "/user/search", key="x" * 32)], strong_headers[1]])
seal("refuses an unknown platform", {"valid": False, "reason": "unknown-key"}, headers=[["X-Netopt-Sealed", sealed(S, "/user/search", platform="nobody")], strong_headers[1]])
seal("refuses what is cut off", {"valid": False, "reason": "malformed-signature"}, headers=[["X-Netopt-Sealed", strong_headers[0][1][:20]], strong_headers[1]])
seal("refuses another version", {"valid": False, "reason": "malformed-signature"}, headers=[["X-Netopt-Sealed", "Ag" + strong_headers[0][1][2:]], strong_headers[1]])
seal("refuses without the inner signature", {"valid": False, "reason": "no-signature"}, headers=strong_headers[:1])
# The request of sealed-key around salted-md5, its salted-md5 signature, and the fields that carry the sealed
# key and the signature.
T = {"method": "GET", "url": "https://api.example.com/user/search?q=1"}
weak_sig = salted(T, secret="callers-own-key", salt="legacy-salt")
weak_headers = [["X-Netopt-Sealed", sealed(T, "user/search", platform="platform.old")], ["X-Netopt-Key", "caller"], ["X-Netopt-Sig", weak_sig]]
# The option that selects salted-md5 inside sealed-key.
W = {"options": {"inner": "salted-md5"}}
add("sealed-key signs around salted-md5", "sealed-key", "sign", {**T, "key_id": "caller", "now": NOW, "options": {"inner": "salted-md5", "platform_key_id": "platform.old", "seal_nonce": SEAL_NONCE}}, {"signature": weak_sig, "headers": weak_headers}, allow_weak=True)
seal("accepts around salted-md5", {"valid": True, "reason": "ok", "assurance": "weak"}, T, weak_headers, extra=W, allow_weak=True)
seal("refuses salted-md5 without leave", {"valid": False, "reason": "weak-scheme"}, T, weak_headers, extra=W)
seal("refuses salted-md5 under a platform key that is not legacy", {"valid": False, "reason": "key-not-legacy"}, T, [["X-Netopt-Sealed", sealed(T, "user/search")]] + weak_headers[1:], extra=W, allow_weak=True)

# rfc9421 --------------------------------------------------------------------------------------------------------------

# The request of the examples in RFC 9421, appendix B.2.
RFC = {"method": "POST", "url": "https://example.com/foo?param=Value&Pet=dog", "body": '{"hello": "world"}', "headers": [
    ["Date", "Tue, 20 Apr 2021 02:07:55 GMT"], ["Content-Type", "application/json"],
    ["Content-Digest", "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:"], ["Content-Length", "18"]]}
# The time at which the RFC's examples were signed, in seconds since 1970.
AT = 1618884473
# The examples by their section, such as b21 for B.2.1: the value of Signature-Input without its label, and
# the signature.
EXAMPLES = {
    "b21": ('();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd"', "d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0mKZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ98Xw9Q=="),
    "b22": ('("@authority" "content-digest" "@query-param";name="Pet");created=1618884473;keyid="test-key-rsa-pss";tag="header-example"', "LjbtqUbfmvjj5C5kr1Ugj4PmLYvx9wVjZvD9GsTT4F7GrcQEdJzgI9qHxICagShLRiLMlAJjtq6N4CDfKtjvuJyE5qH7KT8UCMkSowOB4+ECxCmT8rtAmj/0PIXxi0A0nxKyB09RNrCQibbUjsLS/2YyFYXEu4TRJQzRw1rLEuEfY17SARYhpTlaqwZVtR8NV7+4UKkjqpcAoFqWFQh62s7Cl+H2fjBSpqfZUJcsIk4N6wiKYd4je2U/lankenQ99PZfB4jY3I5rSV2DSBVkSFsURIjYErOs0tFTQosMTAoxk//0RoKUqiYY8Bh0aaUEb0rQl3/XaVe4bXTugEjHSw=="),
    "b23": ('("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-rsa-pss"', "bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38K0fUxN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo5fTIztsDZKEgM4cUA=="),
    "b25": ('("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"', "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8="),
    "b26": ('("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"', "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="),
}
def rfc(input_, sig, label="sig1", line=RFC, **parts):
    """A request with these values of Signature-Input and Signature, to verify at `AT`. `parts` replace parts
    of it.
    """
    return {**line, "headers": line["headers"] + [["Signature-Input", f"{label}={input_}"], ["Signature", f"{label}=:{sig}:"]], "now": AT, **parts}
for name, (input_, sig) in EXAMPLES.items():
    strong = {"assurance": "strong"} if name == "b23" else {"assurance": "weak"}
    add(f"rfc9421 accepts the RFC's example {name}", "rfc9421", "verify", rfc(input_, sig, "sig-" + name), {"valid": True, "reason": "ok", **strong})
for name, key, components in [("b25", "test-shared-secret", ["date", "@authority", "content-type"]), ("b26", "test-key-ed25519", ["date", "@method", "@path", "@authority", "content-type", "content-length"])]:
    input_, sig = EXAMPLES[name]
    add(f"rfc9421 signs the RFC's example {name}", "rfc9421", "sign", {**RFC, "key_id": key, "options": {"label": "sig-" + name, "components": components, "created": AT}, "now": AT},
        {"signature": sig, "headers": [["Signature-Input", f"sig-{name}={input_}"], ["Signature", f"sig-{name}=:{sig}:"]]})

import requests, http_message_signatures as hms
from http_message_signatures import algorithms as A
# The content of a file with a published key.
pem = lambda name: (HERE / "rfc9421" / name).read_bytes()
# Gives http-message-signatures the private key for a key id; `names` are the files of the keys.
class Keys(hms.HTTPSignatureKeyResolver):
    names = {"test-key-ed25519": "test-key-ed25519-private.pem", "test-key-ecc-p256": "test-key-ecc-p256-private.pem", "test-key-rsa": "test-key-rsa-private.pem", "test-key-rsa-2": "test-key-rsa-private.pem"}
    def resolve_private_key(self, key_id):
        if key_id == "test-shared-secret": return base64.b64decode(pem("test-shared-secret"))
        return pem(self.names[key_id])
    resolve_public_key = resolve_private_key
# For each algorithm: its class in http-message-signatures, and the id of the key.
ALGORITHMS = {"hmac-sha256": (A.HMAC_SHA256, "test-shared-secret"), "ed25519": (A.ED25519, "test-key-ed25519"), "ecdsa-p256-sha256": (A.ECDSA_P256_SHA256, "test-key-ecc-p256"),
              "rsa-pss-sha512": (A.RSA_PSS_SHA512, "test-key-rsa"), "rsa-v1_5-sha256": (A.RSA_V1_5_SHA256, "test-key-rsa-2")}
# The components that a strong signature covers.
FULL = ("@method", "@authority", "@target-uri", "@path", "@query", "content-digest", "content-type")
for alg, (kind, key) in ALGORITHMS.items():
    message = requests.Request("POST", RFC["url"], headers={"Content-Type": "application/json", "Content-Digest": RFC["headers"][2][1]}, data=RFC["body"].encode()).prepare()
    hms.HTTPMessageSigner(signature_algorithm=kind, key_resolver=Keys()).sign(
        message, key_id=key, created=datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc), expires=datetime.datetime.fromtimestamp(NOW + 60, datetime.timezone.utc),
        nonce="n-" + alg, label="sig1", covered_component_ids=FULL, body=RFC["body"].encode(), use_existing_digest=True)
    line = {"method": "POST", "url": RFC["url"], "body": RFC["body"], "headers": [[k, v] for k, v in message.headers.items()], "now": NOW}
    # Adds a case for the verifier, with the algorithm of this turn of the loop.
    case = lambda name, line, valid, reason, **f: add(f"rfc9421 {alg} {name}", "rfc9421", "verify", line, {"valid": valid, "reason": reason, **({"assurance": "strong"} if valid else {})}, algorithm=alg, **f)
    case("accepts what http-message-signatures signed", line, True, "ok")
    case("refuses another method", {**line, "method": "PUT"}, False, "signature-mismatch")
    case("refuses another path", {**line, "url": line["url"].replace("foo", "fop")}, False, "signature-mismatch")
    case("refuses another query", {**line, "url": line["url"].replace("dog", "cat")}, False, "signature-mismatch")
    case("refuses another host", {**line, "url": line["url"].replace("example.com", "example.org")}, False, "signature-mismatch")
    case("refuses another body", {**line, "body": "{}"}, False, "body-mismatch")
    case("refuses another field", {**line, "headers": [[k, "text/plain" if k == "Content-Type" else v] for k, v in line["headers"]]}, False, "signature-mismatch")
    case("refuses another time", {**line, "headers": [[k, v.replace(f"created={NOW}", f"created={NOW - 1}")] for k, v in line["headers"]]}, False, "signature-mismatch")
    case("refuses what has expired", {**line, "now": NOW + 61}, False, "signature-expired")
    case("refuses an unknown key", {**line, "headers": [[k, v.replace(key, "nobody")] for k, v in line["headers"]]}, False, "unknown-key")
    case("refuses when more has to be signed", {**line, "headers": line["headers"] + [["X-A", "1"]], "options": {"components": ["x-a"]}}, False, "not-covered")
line = rfc(*EXAMPLES["b26"])
# Adds a case in which the verifier refuses a request in rfc9421.
bad = lambda name, line, reason: add(f"rfc9421 refuses: {name}", "rfc9421", "verify", line, {"valid": False, "reason": reason})
bad("no signature", {**RFC, "now": AT}, "no-signature")
bad("no dictionary", rfc("(", "AA=="), "malformed-signature")
bad("unknown component", rfc('("@nothing");created=1618884473;keyid="test-key-ed25519"', "AA=="), "malformed-signature")
bad("component twice", rfc('("date" "date");created=1618884473;keyid="test-key-ed25519"', "AA=="), "malformed-signature")
bad("field that is not there", rfc('("x-none");created=1618884473;keyid="test-key-ed25519"', "AA=="), "missing-field")
bad("no time", rfc('("date");keyid="test-key-ed25519"', "AA=="), "not-covered")
bad("algorithm of another key", rfc('("date");created=1618884473;keyid="test-key-ed25519";alg="hmac-sha256"', "AA=="), "signature-mismatch")
# The reason must say that this key may not be used with this algorithm.
cases[-1]["expect"]["reason"] = "scheme-not-allowed"
bad("unknown algorithm", rfc('("date");created=1618884473;keyid="test-key-ed25519";alg="rot13"', "AA=="), "malformed-signature")
bad("two labels", {**line, "headers": line["headers"] + [["Signature-Input", 'b=();created=1618884473'], ["Signature", "b=:AA==:"]]}, "malformed-signature")
bad("too old", {**line, "now": AT + 301}, "too-old")

# sigv4 ----------------------------------------------------------------------------------------------------------------

def unfold(text):
    """Reads a raw request of AWS's test suite. Returns it as a line for netopt; folded fields keep their line
    ends.
    """
    head, _, body = text.partition("\n\n")
    head = head.rstrip("\n")
    lines, fields = head.split("\n"), []
    method, target = lines[0].split(" ", 1)[0], lines[0].split(" ", 1)[1].rsplit(" ", 1)[0]
    for l in lines[1:]:
        if l[:1] in " \t" and fields: fields[-1][1] += "\n" + l
        elif l: fields.append(list(l.partition(":")[::2]))
    host = next(v for k, v in fields if k.lower() == "host").strip()
    return {"method": method, "url": "https://" + host + target, "headers": fields, "body": body}

# The examples of AWS, each in two forms: with the signature in a field and in the query.
suite = json.loads((HERE / "aws-sigv4.json").read_text())["cases"]
for c in suite:
    x = c["context"]
    token = x["credentials"].get("token")
    ring = "aws" if not token else "aws-token-" + hashlib.sha256(token.encode()).hexdigest()[:8]
    rings[ring] = {"schema": 1, "keys": [{"id": x["credentials"]["access_key_id"], "secret": x["credentials"]["secret_access_key"], "schemes": ["sigv4"], **({"session_token": token} if token else {})}]}
    now = int(datetime.datetime.fromisoformat(x["timestamp"].replace("Z", "+00:00")).timestamp())
    for form in ("header", "query"):
        o = {"region": x["region"], "service": x["service"], "normalize_path": x["normalize"]}
        if x.get("omit_session_token"): o["omit_session_token"] = True
        if form == "header" and x["sign_body"]: o["sign_body"] = True
        if form == "query": o["presign_seconds"] = x["expiration_in_seconds"]
        add(f"sigv4 signs AWS's {c['name']}, {form}", "sigv4", "sign", {**unfold(c["request"]), "now": now, "options": o},
            {"canonical_request": c[form + "_canonical_request"], "string_to_sign": c[form + "_string_to_sign"], "signature": c[form + "_signature"]}, ring=ring)

from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
import botocore.auth
# botocore signs at `NOW` instead of the present time.
botocore.auth.get_current_datetime = lambda *a, **k: datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None)
for url, headers, body in [("https://api.example.com/a/b?x=1&y=", {"Content-Type": "text/plain", "X-Amz-Meta": "a  b"}, b"hello"), ("https://api.example.com/", {}, b""),
                           ("https://api.example.com/sp%20ace/%E1%88%B4?b=%20&a=%2B&a=1", {"My-Header": "v"}, b"{}")]:
    for presigned in (False, True):
        # botocore moves the body of a presigned request into its query.
        method, data = ("GET", b"") if presigned else ("POST", body)
        request = AWSRequest(method, url, headers=dict(headers), data=data)
        signer = (SigV4QueryAuth if presigned else SigV4Auth)(Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), "execute-api", "eu-west-1", **({"expires": 600} if presigned else {}))
        signer.add_auth(request)
        line = {"method": method, "url": request.url, "headers": [[k, v] for k, v in request.headers.items()], "body": data.decode(), "now": NOW}
        name = f"sigv4 {urllib.parse.urlsplit(url).path} {'query' if presigned else 'header'}"
        # Adds a case for the verifier of the request that botocore has signed.
        case = lambda what, line, valid, reason, **f: add(f"{name} {what}", "sigv4", "verify", line, {"valid": valid, "reason": reason}, ring="aws", **f)
        case("accepts what botocore signed", line, True, "ok")
        case("refuses another method", {**line, "method": "PUT"}, False, "signature-mismatch")
        case("refuses another path", {**line, "url": line["url"].replace(".com/", ".com/z")}, False, "signature-mismatch")
        case("refuses a parameter more", {**line, "url": line["url"] + ("&" if "?" in line["url"] else "?") + "zz=1"}, False, "signature-mismatch")
        case("refuses another body", {**line, "body": "other"}, False, "signature-mismatch")
        case("refuses another host", {**line, "url": line["url"].replace("api.", "app.")}, False, "signature-mismatch")
        case("refuses another region", {**line, "options": {"region": "us-east-1"}}, False, "not-covered")
        case("refuses what is too late", {**line, "now": NOW + 601}, False, "signature-expired" if presigned else "too-old")
        case("refuses an unknown key", json.loads(json.dumps(line).replace("AKIDEXAMPLE", "AKIDNOBODY")), False, "unknown-key")
        case("refuses an x-amz- field that is not signed", {**line, "headers": line["headers"] + [["x-amz-acl", "public"]]}, False, "not-covered")

# near misses of the other schemes ---------------------------------------------------------------------------------------

# The functions below make one mistake each, or make the mistakes `m` that concern a body or a string to sign.

# The host of a split URL with its port, also when that is the default port.
def with_port(url): return url.netloc.lower() if ":" in url.netloc else url.netloc.lower() + {"https": ":443", "http": ":80"}[url.scheme]
def lower(text):
    """The text with lower-case hexadecimal digits in its percent-encodings."""
    head, *rest = text.split("%")
    return "%".join([head] + [p[:2].lower() + p[2:] for p in rest])
def normal(path):
    """The path without its dot segments and empty segments."""
    kept = []
    for s in path.split("/"):
        if s == "..": kept = kept[:-1]
        elif s and s != ".": kept.append(s)
    return "/" + "/".join(kept) + ("/" if path.endswith("/") and kept else "")
def body_of(text, m):
    """The bytes of the body that a signer with these mistakes signs."""
    if "body-left-out" in m: return b""
    if "body-line-end" in m: return text.encode() + b"\n"
    if "body-compact" in m: return json.dumps(json.loads(text), separators=(",", ":")).encode()
    if "body-sorted" in m: return json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True).encode()
    if "body-spaced" in m: return json.dumps(json.loads(text)).encode()
    if "body-sorted-and-spaced" in m: return json.dumps(json.loads(text), sort_keys=True).encode()
    return text.encode()
# The string to sign with the line ends that a signer with these mistakes writes.
def ended(text, m): return text.replace("\n", "\r\n" if "carriage-returns" in m else "\n") + ("\n" if "trailing-newline" in m else "")
# The mistakes in the body.
BODIES = ["body-left-out", "body-line-end", "body-compact", "body-sorted", "body-spaced", "body-sorted-and-spaced"]
# The request of the near misses in rfc9421 and sealed-key.
OTHER = {"method": "POST", "url": "https://API.example.com/\u00e9/%2Fb/./c?q=a%20b&tag=%C3%A9&tag=a&empty=&a=1", "headers": J, "body": '{"b": 1,  "a": [1, 2, "x"]}'}

def rfc_near(line, m=(), secret="peer-secret-2", how="sha256", salt=None):
    """The request signed with HMAC in rfc9421, by a signer that makes the mistakes `m`.

    `secret` is the secret of the key, and `how` the hash of the HMAC. With a `salt`, the signer derives its
    key as netopt1 does, which is a mistake too.
    """
    url = urllib.parse.urlsplit(line["url"])
    raw = lambda text: "".join(c if "!" <= c <= "~" else enc(c) for c in text)
    path, query = url.path, raw(url.query)
    if "path-normalised" in m: path = normal(path)
    if "path-not-normalised" not in m: path = raw(path)
    if "path-encoded-twice" in m: path = path.replace("%", "%25")
    if "empties-dropped" in m: query = "&".join(p for p in query.split("&") if p.partition("=")[2])
    if "plus-for-space" in m: query = query.replace("%20", "+")
    if "lower-case-hex" in m: path, query = lower(path), lower(query)
    if "not-encoded" in m: query = urllib.parse.unquote(query)
    if "encoded-twice" in m: query = query.replace("%", "%25")
    if "query-left-out" in m: query = ""
    digest = "sha-256=:" + base64.b64encode(hashlib.sha256(body_of(line["body"], m)).digest()).decode() + ":"
    params = f'("@method" "@authority" "@path" "@query" "content-digest" "content-type");created={NOW};keyid="peer.v2"'
    base = "\n".join([f'"@method": {line["method"].lower() if "method-lower-case" in m else line["method"]}',
                      f'"@authority": {with_port(url) if "port-kept" in m else authority(url)}', f'"@path": {path}', f'"@query": ?{query}',
                      f'"content-digest": {digest}', f'"content-type": {line["headers"][0][1]}', f'"@signature-params": {params}'])
    k = secret.encode() if salt is None else hmac.digest(secret.encode(), b"netopt1\n" + salt.encode(), "sha256")
    sig = base64.b64encode(hmac.digest(k, ended(base, m).encode(), how)).decode()
    return {**line, "headers": line["headers"] + [["Content-Digest", digest], ["Signature-Input", "sig1=" + params], ["Signature", f"sig1=:{sig}:"]], "now": NOW}

def names(scheme, code, line, reason="signature-mismatch", **flags):
    """Adds a case in which the verifier refuses a request and names the mistake `code`."""
    add(f"{scheme} names: {code}", scheme, "verify", line, {"valid": False, "reason": reason, "near_miss": code}, explain=True, **flags)
add("rfc9421 accepts what near misses are made of", "rfc9421", "verify", rfc_near(OTHER), {"valid": True, "reason": "ok", "assurance": "strong"})
for code in ["plus-for-space", "lower-case-hex", "empties-dropped", "encoded-twice", "not-encoded", "trailing-newline", "carriage-returns", "port-kept", "path-not-normalised",
             "path-normalised", "path-encoded-twice", "method-lower-case", "query-left-out"]: names("rfc9421", code, rfc_near(OTHER, (code,)))
for code in BODIES: names("rfc9421", code, rfc_near(OTHER, (code,)), "body-mismatch")
names("rfc9421", "older-key-version", rfc_near(OTHER, secret="peer-secret-1"))
names("rfc9421", "wrong-salt", rfc_near(OTHER, salt="peer-salt-2"))
names("rfc9421", "wrong-scheme", rfc_near(OTHER, how="sha512"))
names("rfc9421", "lower-case-hex+method-lower-case", rfc_near(OTHER, ("lower-case-hex", "method-lower-case")))
names("rfc9421", "query-left-out+older-key-version", rfc_near(OTHER, ("query-left-out",), secret="peer-secret-1"))

def sig_near(line, m=(), secret="peer-secret-2", prefix="AWS4", steps=4, service="execute-api"):
    """The request signed in sigv4, by a signer that makes the mistakes `m`.

    `prefix` is the text before the secret, and `steps` the number of steps that derive the key. Other values
    than the defaults are mistakes too. With the `service` s3, a path is not normalised and is encoded only
    once.
    """
    url = urllib.parse.urlsplit(line["url"])
    path = url.path
    if ("path-not-normalised" not in m and service != "s3") or "path-normalised" in m: path = normal(path)
    twice = (service != "s3") != bool({"path-encoded-once", "path-encoded-twice"} & set(m))
    path = "/".join(enc(s.encode() if twice else urllib.parse.unquote_to_bytes(s)) for s in path.split("/"))
    ps = [tuple(urllib.parse.unquote_to_bytes(part) for part in piece.partition("=")[::2]) for piece in url.query.split("&")]
    if "empties-dropped" in m: ps = [p for p in ps if p[1]]
    def e(raw):
        if "not-encoded" in m: return raw.decode()
        text = enc(raw)
        if "plus-for-space" in m: text = text.replace("%20", "+")
        return text.replace("%", "%25") if "encoded-twice" in m else text
    ps = [(e(k), e(v)) for k, v in ps]
    if "duplicate-order" in m: ps.sort(key=lambda p: p[0])
    elif "params-not-sorted" not in m: ps.sort(key=lambda p: (p[0].encode(), p[1].encode()))
    query = "" if "query-left-out" in m else "&".join(k + "=" + v for k, v in ps)
    if "lower-case-hex" in m: path, query = lower(path), lower(query)
    date = datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    fields = {"content-type": line["headers"][0][1], "host": with_port(url) if "port-kept" in m else authority(url), "x-amz-date": date}
    canonical = "\n".join([line["method"].lower() if "method-lower-case" in m else line["method"], path, query] + [f"{k}:{v}" for k, v in fields.items()]
                          + ["", ";".join(fields), hashlib.sha256(body_of(line["body"], m)).hexdigest()])
    chain = [date[:8], "eu-west-1", service, "aws4_request"]
    k = (prefix + secret).encode()
    for step in chain[:steps]: k = hmac.digest(k, step.encode(), "sha256")
    string = f"AWS4-HMAC-SHA256\n{date}\n{'/'.join(chain)}\n{hashlib.sha256(ended(canonical, m).encode()).hexdigest()}"
    sig = hmac.digest(k, string.encode(), "sha256").hex()
    credential = f"AWS4-HMAC-SHA256 Credential=peer.v2/{'/'.join(chain)}, SignedHeaders={';'.join(fields)}, Signature={sig}"
    return {**line, "headers": line["headers"] + [["X-Amz-Date", date], ["Authorization", credential]], "now": NOW}

# The request of the near misses in sigv4.
AWS = {**OTHER, "url": "https://api.example.com/a%20b/./c?q=a%20b&tag=%C3%A9&tag=a&empty=&a=1"}
add("sigv4 accepts what near misses are made of", "sigv4", "verify", sig_near(AWS), {"valid": True, "reason": "ok", "assurance": "strong"})
for code in ["plus-for-space", "lower-case-hex", "empties-dropped", "duplicate-order", "params-not-sorted", "encoded-twice", "not-encoded", "trailing-newline", "carriage-returns", "port-kept",
             "path-not-normalised", "path-encoded-once", "method-lower-case", "query-left-out"] + BODIES:
    line = {**AWS, "url": "https://api.example.com/?t=b&t=a"} if code == "duplicate-order" else AWS
    names("sigv4", code, sig_near(line, (code,)))
names("sigv4", "path-normalised", sig_near(AWS, ("path-normalised",), service="s3"))
names("sigv4", "older-key-version", sig_near(AWS, secret="peer-secret-1"))
names("sigv4", "wrong-salt", sig_near(AWS, prefix=""))
names("sigv4", "wrong-salt", sig_near(AWS, steps=3))
names("sigv4", "wrong-scheme", sig_near(AWS, prefix="", steps=0))
names("sigv4", "plus-for-space+port-kept", sig_near(AWS, ("plus-for-space", "port-kept")))
names("sigv4", "body-compact+trailing-newline", sig_near(AWS, ("body-compact", "trailing-newline")))
digest = hashlib.sha256(body_of(AWS["body"], ("body-compact",))).hexdigest()
stated = {**sig_near(AWS), "headers": sig_near(AWS)["headers"] + [["X-Amz-Content-Sha256", digest]]}
add("sigv4 refuses a stated digest that is not signed", "sigv4", "verify", stated, {"valid": False, "reason": "not-covered"})

def salted_near(line, m=(), secret="legacy-secret-2", salt="pepper-2", how="md5", rounds=2):
    """The request signed in salted-md5, by a signer that makes the mistakes `m`.

    `how` is the hash, and `rounds` the number of times that it is applied.
    """
    url = urllib.parse.urlsplit(line["url"])
    h = lambda raw: hashlib.new(how, raw).hexdigest().encode()
    ps = [(k, v) for k, v in pairs(url.query) if v or "empties-dropped" in m]
    def e(raw):
        text = enc(raw) if {"encoded-twice", "lower-case-hex"} & set(m) else raw.decode()
        return (text.replace(" ", "+") if "plus-for-space" in m else text).encode()
    ps = [(e(k), e(v)) for k, v in ps]
    if "duplicate-order" in m: ps.sort(key=lambda p: p[0])
    elif "params-not-sorted" not in m: ps.sort(key=lambda p: p[0] + b"=" + p[1])
    p = b"" if "query-left-out" in m else b"&".join(k + b"=" + v for k, v in ps)
    digest = h(secret.encode() + url.path[1:].encode() + p + (b"\n" if "trailing-newline" in m else b""))
    for _ in range(rounds - 1): digest = h(digest + salt.encode())
    return {**line, "headers": [["X-Netopt-Key", "legacy.v2"], ["X-Netopt-Sig", digest.decode()]], "now": NOW}

# The request of the near misses in salted-md5.
PAY = {"method": "GET", "url": "https://api.example.com/user/search?q=a%20b&tag=x&page=1&tag=a&empty=&c=%C3%A9"}
# The flag that lets the verifier accept weak schemes.
allowed = {"allow_weak": True}
add("salted-md5 accepts what near misses are made of", "salted-md5", "verify", salted_near(PAY), {"valid": True, "reason": "ok", "assurance": "weak"}, **allowed)
for code in ["empties-dropped", "duplicate-order", "params-not-sorted", "encoded-twice", "trailing-newline", "query-left-out"]:
    names("salted-md5", code, salted_near(PAY, (code,)), **allowed)
# salted-md5 encodes values only with the option `encode`. Without encoding there are no hexadecimal digits to
# write in lower case. So this request has the option, and its signature with the mistake is computed here.
names("salted-md5", "lower-case-hex", {**PAY, "headers": [["X-Netopt-Key", "legacy.v2"], ["X-Netopt-Sig", hashlib.md5(hashlib.md5(b"legacy-secret-2user/search" + b"&".join(sorted(
    lower(enc(k)).encode() + b"=" + lower(enc(v)).encode() for k, v in pairs(urllib.parse.urlsplit(PAY["url"]).query) if v))).hexdigest().encode() + b"pepper-2").hexdigest()]],
    "now": NOW, "options": {"encode": True}}, **allowed)
names("salted-md5", "older-key-version", salted_near(PAY, secret="legacy-secret-1", salt="pepper-1"), **allowed)
names("salted-md5", "wrong-salt", salted_near(PAY, salt=""), **allowed)
names("salted-md5", "wrong-scheme", salted_near(PAY, how="sha256"), **allowed)
names("salted-md5", "wrong-scheme", salted_near(PAY, rounds=3), **allowed)
names("salted-md5", "empties-dropped+wrong-salt", salted_near(PAY, ("empties-dropped",), salt=""), **allowed)

def sealed_near(m=(), salt="platform-salt"):
    """The request in sealed-key around netopt1, by a signer that makes the mistakes `m` in netopt1."""
    line = {**OTHER, "url": "https://api.example.com/user/search?q=a%20b&empty="}
    auth = netopt1(line, secret="callers-own-key", salt=salt, key="caller", m=m)[2]
    return {**line, "headers": J + [["X-Netopt-Sealed", sealed(line, "/user/search")], ["Authorization", auth]], "now": NOW}
add("sealed-key accepts what near misses are made of", "sealed-key", "verify", sealed_near(), {"valid": True, "reason": "ok", "assurance": "strong"})
for code in ["plus-for-space", "empties-dropped", "trailing-newline", "method-lower-case", "query-left-out", "body-compact", "body-sorted"]: names("sealed-key", code, sealed_near((code,)))
names("sealed-key", "wrong-salt", sealed_near(salt=""))

# A key of a key ring, in the format of the file.
def key(id, secret, schemes=("netopt1",), **more): return {"id": id, "secret": secret, "schemes": list(schemes), **more}
# The text of a file with a published key.
text = lambda name: pem(name).decode()
rings["main"] = {"schema": 1, "keys": [
    key("app1.v2", SECRET, salt=SALT), key("app1.v1", "older-secret", salt="salt-2023"),
    key("expired", SECRET, salt=SALT, not_after=NOW - 1), key("early", SECRET, salt=SALT, not_before="2033-01-01T00:00:00Z"), key("aws-only", SECRET, ["sigv4"], salt=SALT),
    key("scoped", SECRET, salt=SALT, scopes=[{"hosts": ["*.example.com"], "methods": ["GET"], "path_prefixes": ["/public"]}]),
    key("old", "s3cret", ["salted-md5"], salt="pepper", legacy=True), key("modern", "s3cret", ["salted-md5", "netopt1"], salt="pepper"),
    key("platform.v1", PLATFORM, ["sealed-key"], salt="platform-salt"), key("platform.old", PLATFORM, ["sealed-key"], salt="legacy-salt", legacy=True), key("caller", "callers-own-key", ["sealed-key"]),
    key("peer.v2", "peer-secret-2", ["rfc9421", "sigv4"], salt="peer-salt-2"), key("peer.v1", "peer-secret-1", ["rfc9421", "sigv4"], salt="peer-salt-1"),
    key("legacy.v2", "legacy-secret-2", ["salted-md5"], salt="pepper-2", legacy=True), key("legacy.v1", "legacy-secret-1", ["salted-md5"], salt="pepper-1", legacy=True),
    {"id": "test-shared-secret", "secret_base64": text("test-shared-secret").strip(), "schemes": ["rfc9421"]},
    {"id": "test-key-ed25519", "private_key_pem": text("test-key-ed25519-private.pem"), "schemes": ["rfc9421"]},
    {"id": "test-key-ecc-p256", "private_key_pem": text("test-key-ecc-p256-private.pem"), "schemes": ["rfc9421"]},
    {"id": "test-key-rsa", "private_key_pem": text("test-key-rsa-private.pem"), "schemes": ["rfc9421"]},
    {"id": "test-key-rsa-2", "private_key_pem": text("test-key-rsa-private.pem"), "schemes": ["rfc9421"]},
    {"id": "test-key-rsa-pss", "public_key_pem": text("test-key-rsa-pss-public.pem"), "schemes": ["rfc9421"]},
]}
(HERE / "signing.json").write_text(json.dumps({"schema_version": 1, "rings": rings, "cases": cases}, indent=1, ensure_ascii=False) + "\n")
count = {}
for c in cases: count[c["scheme"]] = count.get(c["scheme"], 0) + 1
print(len(cases), count)
