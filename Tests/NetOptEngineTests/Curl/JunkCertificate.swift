import FoundationEssentials
import NetOptTestSupport
import TestTools

/// Certificates that no authority has signed. A server can send them after its own certificate. A client has
/// to decode them before it can reject them.
enum JunkCertificate {
  /// Returns a certificate of a given size with as many empty extensions as fit.
  ///
  /// - Parameter count: the size of the decoded certificate in bytes, from 496 to 65,539.
  /// - Returns: PEM.
  static func ofExtensions(bytes count: Int) -> String {
    // An empty extension takes 7 bytes. The value of the last extension fills the rest of the size: it has
    // 300 to 306 bytes. So no length in the certificate takes more bytes than in `extended(0, 300)`.
    let rest = count - extended(0, 300).count
    return pem(extended(rest / 7, 300 + rest % 7))
  }

  /// A certificate (PEM) with a key on a curve that is given by parameters: y^2 = x^3 + b modulo a prime
  /// k 2^640 + 1 of 661 bits.
  ///
  /// The generator of the curve and the key are compressed points: the certificate gives x and the sign of y.
  /// OpenSSL computes y when it decodes the certificate. This takes 100 ms, because OpenSSL finds a square
  /// root modulo this prime in 640 steps.
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

  /// Returns a certificate with a key on a standard curve that is given by parameters instead of by name.
  ///
  /// - Parameter curve: OpenSSL's name of the curve.
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

  /// Returns the size of the certificate in a PEM file, in bytes.
  static func size(of file: String) -> Int {
    let lines = TextFile.read(file).split(separator: "\n").filter { !$0.hasPrefix("-----") }
    return Data(base64Encoded: lines.joined())?.count ?? 0
  }

  /// Returns a certificate in PEM.
  ///
  /// - Parameter bytes: the certificate in DER.
  private static func pem(_ bytes: [UInt8]) -> String {
    let text = Data(bytes).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
    return "-----BEGIN CERTIFICATE-----\n\(text)\n-----END CERTIFICATE-----\n"
  }

  /// Returns a certificate in DER whose signature is not valid.
  ///
  /// - Parameters:
  ///   - count: the number of empty extensions.
  ///   - lengthOfLast: the length in bytes of the value of one more extension, which comes last.
  private static func extended(_ count: Int, _ lengthOfLast: Int) -> [UInt8] {
    // The object identifier of each extension is 1.1.
    let empty: [UInt8] = [0x30, 5, 6, 1, 0x29, 4, 0]
    let last = field(0x30, [6, 1, 0x29] + field(4, [UInt8](repeating: 0, count: lengthOfLast)))
    let algorithm: [UInt8] = [0x30, 5, 6, 3, 0x2b, 0x65, 0x70]
    let validity =
      field(0x17, Array("250101000000Z".utf8)) + field(0x17, Array("350101000000Z".utf8))
    // Version 3, serial number 1, and an Ed25519 key, for which any 32 bytes are valid.
    let start: [UInt8] =
      [0xa0, 3, 2, 1, 2, 2, 1, 1] + algorithm + [0x30, 0] + field(0x30, validity) + [0x30, 0]
    let key = field(0x30, algorithm + field(3, [UInt8](repeating: 0, count: 33)))
    let extensions = field(0xa3, field(0x30, [[UInt8]](repeating: empty, count: count).flatMap { $0 } + last))
    let signature = field(3, [UInt8](repeating: 0, count: 65))
    return field(0x30, field(0x30, start + key + extensions) + algorithm + signature)
  }

  /// Returns a value of ASN.1 in DER: its tag, its length and its content (X.690, section 8.1).
  ///
  /// - Parameter content: at most 65,535 bytes.
  private static func field(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    let (high, low) = (UInt8(content.count >> 8), UInt8(content.count & 0xff))
    return [tag] + (high > 0 ? [0x82, high, low] : low > 127 ? [0x81, low] : [low]) + content
  }
}
