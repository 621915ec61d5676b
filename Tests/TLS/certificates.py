"""Writes certificates, keys and revocation lists for tests into a directory.

Usage: certificates.py DIRECTORY. Every certificate NAME has the files NAME.pem and NAME.key. pins.json has the pin of
each certificate's key. The passphrase of encrypted files is "secret".
"""

import base64
import datetime
import hashlib
import json
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DIRECTORY = sys.argv[1]
NOW = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
DAY = datetime.timedelta(days=1)
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
PINS = {}


def write(name, data):
    """Writes a file."""
    with open(f"{DIRECTORY}/{name}", "wb") as file:
        file.write(data)


def pem(key, passphrase=None):
    """Returns a private key in PEM form."""
    encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def make(name, common_name, issuer=None, usage=SERVER, names=(), start=-DAY, end=30 * DAY, is_authority=False, key=None):
    """Makes a certificate and its key, unless there is one, and writes both."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    (authority, signer) = issuer or (None, key)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + start)
        .not_valid_after(NOW + end)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if is_authority:
        bits = dict.fromkeys(
            ["digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "encipher_only", "decipher_only"], False)
        builder = builder.add_extension(x509.KeyUsage(key_cert_sign=True, crl_sign=True, **bits), critical=True)
    else:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), critical=False)
    certificate = builder.sign(signer, hashes.SHA256())
    write(f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM))
    write(f"{name}.key", pem(key))
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    PINS[name] = "sha256/" + base64.b64encode(hashlib.sha256(public).digest()).decode()
    return certificate, key


def element(tag, content):
    """Returns a field of ASN.1 in DER with a length of three bytes."""
    return bytes([tag, 0x83]) + len(content).to_bytes(3, "big") + content


def huge_key(sizes):
    """Returns an RSA key in PEM form whose numbers have these sizes in bits: n, e, d, p, q, and three more."""
    numbers = b"".join(element(2, b"\0" + b"\xff" * (bits // 8)) for bits in sizes)
    text = base64.encodebytes(element(0x30, element(2, b"\0") + numbers))
    return b"-----BEGIN RSA PRIVATE KEY-----\n" + text + b"-----END RSA PRIVATE KEY-----\n"


def revoke(name, issuer, certificates, end=30 * DAY):
    """Writes the revocation list of an authority."""
    authority, key = issuer
    builder = x509.CertificateRevocationListBuilder().issuer_name(authority.subject)
    builder = builder.last_update(NOW - 2 * DAY).next_update(NOW + end)
    for certificate in certificates:
        revoked = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number)
        builder = builder.add_revoked_certificate(revoked.revocation_date(NOW - DAY).build())
    write(f"{name}.pem", builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


def main():
    """Makes everything."""
    api = ["api.test"]
    ca = make("ca", "test authority", is_authority=True)
    other = make("other-ca", "other authority", is_authority=True)
    between = make("intermediate", "intermediate authority", ca, is_authority=True)
    make("server", "api.test", ca, names=api)
    make("next", "api.test", ca, names=api)
    make("wrong-name", "portal.test", ca, names=["portal.test"])
    make("expired", "api.test", ca, names=api, start=-9 * DAY, end=-DAY)
    make("not-yet-valid", "api.test", ca, names=api, start=DAY)
    make("self-signed", "api.test", names=api)
    make("of-other", "api.test", other, names=api)
    make("for-clients", "api.test", ca, usage=CLIENT, names=api)
    leaf, _ = make("without-chain", "api.test", between, names=api)
    make("with-chain", "api.test", between, names=api)
    for name in ["with-chain"]:
        chain = b"".join(open(f"{DIRECTORY}/{n}.pem", "rb").read() for n in [name, "intermediate"])
        write(f"{name}.pem", chain)
    revoked, _ = make("revoked", "api.test", ca, names=api)
    revoke("crl", ca, [revoked, leaf])
    revoke("crl-expired", ca, [], end=-DAY)
    revoke("crl-of-other", other, [])
    alice, key = make("alice", "alice", ca, usage=CLIENT)
    make("bob", "bob", ca, usage=CLIENT)
    make("expired-client", "carol", ca, usage=CLIENT, start=-9 * DAY, end=-DAY)
    make("of-other-client", "mallory", other, usage=CLIENT)
    # OpenSSL refuses keys that are so short.
    make("short-key-client", "dave", ca, usage=CLIENT, key=rsa.generate_private_key(65537, 1024))
    write("alice-encrypted.key", pem(key, b"secret"))
    both = open(f"{DIRECTORY}/alice.pem", "rb").read() + pem(key)
    write("alice-both.pem", both)
    write("alice.p12", pkcs12.serialize_key_and_certificates(
        b"alice", key, alice, None, serialization.BestAvailableEncryption(b"secret")))
    write("nothing.pem", b"nothing\n")
    halves = [2048] * 5
    write("huge-modulus.key", huge_key([20_000, 16, 20_000, *[10_000] * 5]))
    write("huge-exponent.key", huge_key([4096, 100_000, 4096, *halves]))
    write("huge-prime.key", huge_key([4096, 16, 4096, 60_000, *halves[1:]]))
    write("huge-factors.key", huge_key([8192, 16, *[8192] * 6]))
    write("agreement.key", pem(x25519.X25519PrivateKey.generate(), b"secret"))
    write("pins.json", json.dumps(PINS).encode())


main()
