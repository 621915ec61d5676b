import FoundationEssentials
import NetOptTestSupport
import TestTools

/// Certificates that nobody has signed. A server can send them behind its own; a client has to read them before it knows what they are.
enum JunkCertificate {
  /// A certificate with as many empty extensions as it has room for.
  ///
  /// - Parameter count: how many bytes it has; 600 at least.
  /// - Returns: PEM.
  static func ofExtensions(bytes count: Int) -> String {
    // The rest is in the value of one extension, whose length has two bytes in any case.
    let rest = count - extended(0, 300).count
    return pem(extended(rest / 7, 300 + rest % 7))
  }

  /// A certificate with a key on a described curve: y^2 = x^3 + b modulo a prime k 2^640 + 1 of 661 bits. Generator and key are given by their
  /// first coordinate and a sign. OpenSSL needs a tenth of a second to find the second coordinates, since it looks for square roots modulo the
  /// prime step by step, 640 of them.
  static let ofSlowCurve = """
    -----BEGIN CERTIFICATE-----
    MIIB7zCCAdSgAwIBAgIBATAKBggqhkjOPQQDAjANMQswCQYDVQQDDAJ4MDAeFw0yMDAxMDEwMDAw
    MDBaFw00MDAxMDEwMDAwMDBaMA0xCzAJBgNVBAMMAngwMIIBfjCCASMGByqGSM49AgEwggEWAgEB
    MF4GByqGSM49AQECUxXKFwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABMFgEAQAEUw2NWtVCJS1UY6Jy
    aP7pqcHkRvVG7YmOKKUe9Plmu1RvQotQ/V9ULbpbZs2bSXeF5yoNNqCSZ5wielcIi00whHeqy1RF
    kyPRDtgcd/6qYx157c0XBFQCC9J5idOkt6Rti9mQXRHd0CAaQWjEIqdrSkOZIRCdDdGKqGZaA6YS
    9VMunEsOnn+UtZ2w83t6+1bhK1aDPOE3i5OYPEuXjq8YRjuKTSdmfZ0SiUUCAQcDVQACC9J5idOk
    t6Rti9mQXRHd0CAaQWjEIqdrSkOZIRCdDdGKqGZaA6YS9VMunEsOnn+UtZ2w83t6+1bhK1aDPOE3
    i5OYPEuXjq8YRjuKTSdmfZ0SiUUwCgYIKoZIzj0EAwIDCQAwBgIBAQIBAQ==
    -----END CERTIFICATE-----


    """

  /// A certificate with a key on a curve of the standards, which is described and not named.
  ///
  /// - Parameter curve: OpenSSL's name of it.
  /// - Returns: PEM.
  static func ofDescribedCurve(_ curve: String) async throws -> String {
    let directory = try TemporaryDirectory.make("curve")
    try await ChildProcess.run(
      "openssl",
      ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:\(curve)", "-pkeyopt"]
        + ["ec_param_enc:explicit", "-nodes", "-subj", "/CN=junk", "-keyout", "\(directory)/key.pem"]
        + ["-out", "\(directory)/certificate.pem"], in: directory)
    return TextFile.read("\(directory)/certificate.pem")
  }

  /// How many bytes the certificate of a file has.
  static func size(of file: String) -> Int {
    let lines = TextFile.read(file).split(separator: "\n").filter { !$0.hasPrefix("-----") }
    return Data(base64Encoded: lines.joined())?.count ?? 0
  }

  private static func pem(_ bytes: [UInt8]) -> String {
    let text = Data(bytes).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
    return "-----BEGIN CERTIFICATE-----\n\(text)\n-----END CERTIFICATE-----\n"
  }

  private static func extended(_ count: Int, _ lengthOfLast: Int) -> [UInt8] {
    // The identifier is 1.1.
    let empty: [UInt8] = [0x30, 5, 6, 1, 0x29, 4, 0]
    let last = field(0x30, [6, 1, 0x29] + field(4, [UInt8](repeating: 0, count: lengthOfLast)))
    let algorithm: [UInt8] = [0x30, 5, 6, 3, 0x2b, 0x65, 0x70]
    let validity =
      field(0x17, Array("250101000000Z".utf8)) + field(0x17, Array("350101000000Z".utf8))
    // Version 3, number 1, and a key of Ed25519, for which any 32 bytes will do.
    let start: [UInt8] =
      [0xa0, 3, 2, 1, 2, 2, 1, 1] + algorithm + [0x30, 0] + field(0x30, validity) + [0x30, 0]
    let key = field(0x30, algorithm + field(3, [UInt8](repeating: 0, count: 33)))
    let extensions = field(0xa3, field(0x30, [[UInt8]](repeating: empty, count: count).flatMap { $0 } + last))
    let signature = field(3, [UInt8](repeating: 0, count: 65))
    return field(0x30, field(0x30, start + key + extensions) + algorithm + signature)
  }

  /// A field of ASN.1 in DER (X.690, section 8.1).
  private static func field(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    let (high, low) = (UInt8(content.count >> 8), UInt8(content.count & 0xff))
    return [tag] + (high > 0 ? [0x82, high, low] : low > 127 ? [0x81, low] : [low]) + content
  }
}
