"""Checks netopt's signatures against those of http-message-signatures (RFC 9421) and botocore (SigV4).

    peers.py sign           signs requests with these packages, and prints them for netopt to verify:
                            each request is a line of JSON
    peers.py verify FILE    verifies the requests in FILE, which netopt has signed: each is a line of JSON;
                            prints each wrong signature, and at last the number of right ones
"""
import base64, datetime, json, pathlib, random, sys, urllib.parse

import botocore.auth, requests
import http_message_signatures as hms
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives import serialization
from http_message_signatures import algorithms as A

# The directory of the published keys of RFC 9421.
KEYS = pathlib.Path(__file__).parent / "rfc9421"
# The time of signing, in seconds since 1970.
NOW = 1_700_000_000
# The same moment for http-message-signatures and botocore.
MOMENT = datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc)
# For each algorithm: its class in http-message-signatures, the id of the key, and the part of the key's file
# name that identifies the key; None for the shared secret.
ALGORITHMS = {
    "hmac-sha256": (A.HMAC_SHA256, "test-shared-secret", None), "ed25519": (A.ED25519, "test-key-ed25519", "ed25519"),
    "ecdsa-p256-sha256": (A.ECDSA_P256_SHA256, "test-key-ecc-p256", "ecc-p256"),
    "rsa-pss-sha512": (A.RSA_PSS_SHA512, "test-key-rsa", "rsa"), "rsa-v1_5-sha256": (A.RSA_V1_5_SHA256, "test-key-rsa", "rsa"),
}
# The key of SigV4.
CREDENTIALS = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
# botocore signs at `NOW` instead of the present time.
botocore.auth.get_current_datetime = lambda *a, **k: MOMENT.replace(tzinfo=None)


class Keys(hms.HTTPSignatureKeyResolver):
    """Gives http-message-signatures the key of one algorithm, whatever key id it asks for.

    `name` is the third element in `ALGORITHMS`.
    """

    def __init__(self, name):
        self.name = name

    def resolve_private_key(self, key_id):
        if self.name is None:
            return base64.b64decode((KEYS / "test-shared-secret").read_bytes())
        return (KEYS / f"test-key-{self.name}-private.pem").read_bytes()

    def resolve_public_key(self, key_id):
        secret = self.resolve_private_key(key_id)
        if self.name is None:
            return secret
        public = serialization.load_pem_private_key(secret, None).public_key()
        return public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def requests_by_chance(count):
    """Yields random requests, always the same ones: method, URL, fields and body."""
    rng = random.Random(9421)
    words = ["a", "b1", "c-d", "e%20f", "%C3%A9", "x.y", "~", "%2F"]
    for _ in range(count):
        path = "".join("/" + rng.choice(words) for _ in range(rng.randrange(4))) or "/"
        query = "&".join(rng.choice(words) + "=" + rng.choice(words) for _ in range(rng.randrange(4)))
        body = rng.choice([b"", b"{}", b'{"hello": "world"}', "é".encode() * 50])
        headers = {"Content-Type": rng.choice(["application/json", "text/plain"])} if body else {}
        if rng.random() < 0.5:
            headers["X-Trace"] = rng.choice(["1", "two words", "a,b"])
        yield "POST" if body else rng.choice(["GET", "DELETE"]), f"https://api.example.com{path}" + ("?" + query if query else ""), headers, body


def line(kind, method, url, headers, body):
    """Prints a signed request as a line of JSON. `kind` is the scheme: "rfc9421" or "sigv4"."""
    print(json.dumps({"kind": kind, "line": {
        "method": method, "url": url, "headers": [[k, v] for k, v in headers.items()], "now": NOW,
        "body_base64": base64.b64encode(body).decode()}}))


def sign():
    """Signs random requests in each way, and prints them."""
    for method, url, headers, body in requests_by_chance(20):
        for name, (algorithm, key, file) in ALGORITHMS.items():
            message = requests.Request(method, url, headers=headers, data=body or None).prepare()
            covered = ["@method", "@authority", "@target-uri"] + [k.lower() for k in headers]
            if body:
                covered.append("content-digest")
            hms.HTTPMessageSigner(signature_algorithm=algorithm, key_resolver=Keys(file)).sign(
                message, key_id=key, created=MOMENT, nonce="n", label="peer", covered_component_ids=covered,
                body=body or None)
            line("rfc9421", method, message.url, message.headers, body)
        request = AWSRequest(method, url, headers=dict(headers), data=body)
        SigV4Auth(CREDENTIALS, "execute-api", "eu-west-1").add_auth(request)
        line("sigv4", method, request.url, request.headers, body)
        request = AWSRequest("GET", url, headers=dict(headers))
        SigV4QueryAuth(CREDENTIALS, "execute-api", "eu-west-1", expires=600).add_auth(request)
        line("sigv4", "GET", request.url, request.headers, b"")


def verify(path):
    """Verifies the requests in a file, and prints the faults and the number of valid signatures.

    The `kind` of a request is "sigv4" or the algorithm of its signature in RFC 9421.
    """
    right = 0
    for text in open(path):
        item = json.loads(text)
        body = base64.b64decode(item["body_base64"])
        headers = dict(item["headers"])
        try:
            if item["kind"] == "sigv4":
                request = AWSRequest(item["method"], item["url"], headers={k: v for k, v in headers.items() if k not in ("Authorization", "X-Amz-Date")}, data=body)
                SigV4Auth(CREDENTIALS, "execute-api", "eu-west-1").add_auth(request)
                theirs, ours = request.headers["Authorization"], headers["Authorization"]
                if theirs != ours:
                    raise ValueError(f"botocore has {theirs}, netopt {ours}")
            else:
                algorithm, _, file = ALGORITHMS[item["kind"]]
                message = requests.Request(item["method"], item["url"], headers=headers, data=body or None).prepare()
                results = hms.HTTPMessageVerifier(signature_algorithm=algorithm, key_resolver=Keys(file)).verify(
                    message, max_age=None, body=body or None)
                if len(results) != 1:
                    raise ValueError(f"{len(results)} signatures")
            right += 1
        except Exception as error:
            print(item["kind"], item["method"], item["url"], type(error).__name__, error)
    print(right)


if __name__ == "__main__":
    sign() if sys.argv[1] == "sign" else verify(sys.argv[2])
