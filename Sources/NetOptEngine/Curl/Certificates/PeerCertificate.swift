import COpenSSL
import NetOptCore

/// The certificate of a connection's server, or of its proxy. OpenSSL keeps this object as long as the
/// context (`SSL_CTX`) of the connection. The transfer that opened the connection keeps it too, to report
/// what was wrong with the certificate.
///
/// libcurl also reports certificates (CURLINFO_CERTINFO(3)), but at a high cost: it prints each part of each
/// certificate in the server's list, which takes 50 ms of the loop for 70 KB. It keeps the text as long as
/// the handle, and reports nothing for a resumed session. Confined to the loop.
final class PeerCertificate {
  /// OpenSSL's certificate, an X509, which this object frees; `nil` until the handshake ends.
  private var certificate: OpaquePointer?
  /// What the certificate is verified against; `nil` when libcurl reads the authorities itself.
  private let trust: TrustStore?
  private let authorities: Authorities

  private init(_ tls: HostTLS) {
    trust = tls.trust?.store
    authorities = tls.authorities
  }

  deinit { if let certificate { Functions.loaded?.free(certificate) } }

  /// Makes the connection of a context keep the certificate that the peer presents.
  ///
  /// - Parameters:
  ///   - context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)), for one connection.
  ///   - tls: the settings that were applied to the context.
  /// - Returns: the object that gets the certificate; `nil` when OpenSSL cannot keep it.
  static func attach(to context: OpaquePointer, verifiedBy tls: HostTLS) -> PeerCertificate? {
    guard let functions = Functions.loaded else { return nil }
    let certificate = PeerCertificate(tls)
    let reference = Unmanaged.passRetained(certificate)
    guard functions.setData(context, functions.index, reference.toOpaque()) == 1 else {
      reference.release()
      return nil
    }
    return certificate
  }

  /// Stores a connection's certificate in the object that `attach` made for the connection's context. Called
  /// at the end of each handshake. After a renegotiation, the first certificate stays.
  static func keep(of ssl: OpaquePointer) {
    guard let kept = attached(to: ssl), kept.certificate == nil else { return }
    kept.certificate = Functions.loaded?.certificate(ssl)
  }

  /// Parses the authorities that the certificate of a connection is verified against, unless that has been
  /// done. Called before OpenSSL decodes the certificate.
  static func prepare(_ ssl: OpaquePointer) { attached(to: ssl)?.trust?.parse() }

  /// The failure of a leg whose certificate could not be verified because the authorities cannot be read;
  /// `nil` if they can.
  var authoritiesFailure: LegFailure? { trust?.isDamaged == true ? authorities.failure : nil }

  /// Returns the object that `attach` made for the context of a connection.
  private static func attached(to ssl: OpaquePointer) -> PeerCertificate? {
    guard let functions = Functions.loaded, let context = functions.context(ssl),
      let data = functions.getData(context, functions.index)
    else { return nil }
    return Unmanaged<PeerCertificate>.fromOpaque(data).takeUnretainedValue()
  }

  /// Returns what a kind of line says about the certificate, in OpenSSL's words; `nil` if the certificate
  /// lacks it.
  func text(of line: CertificateLine) -> String? {
    guard let certificate, let functions = Functions.loaded, let method = functions.memory(),
      let output = functions.newBIO(method)
    else { return nil }
    defer { _ = functions.freeBIO(output) }
    switch line {
    case .subject:
      guard let name = functions.subject(certificate) else { return nil }
      _ = functions.printName(output, name, 0, netopt_name_on_one_line)
    case .expiry:
      guard let time = functions.notAfter(certificate) else { return nil }
      _ = functions.printTime(output, time)
    case .alternativeNames:
      let index = functions.findExtension(certificate, netopt_nid_alternative_names, -1)
      guard index >= 0, let names = functions.extension(certificate, index) else { return nil }
      _ = functions.printExtension(output, names, 0, 0)
    }
    // BIO_get_mem_data(3) is a macro for this.
    var start: UnsafePointer<UInt8>?
    let count = functions.control(output, netopt_bio_info, 0, &start)
    return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }

  /// OpenSSL's functions. Their types are those of the man pages, and nothing checks the types:
  /// SSL_get_SSL_CTX(3), SSL_CTX_set_ex_data(3), CRYPTO_get_ex_new_index(3), SSL_get1_peer_certificate(3),
  /// X509_get_subject_name(3), X509_NAME_print_ex(3), X509_get0_notAfter(3), ASN1_TIME_print(3),
  /// X509_get_ext_by_NID(3), X509V3_EXT_print(3), BIO_s_mem(3), BIO_ctrl(3).
  /// `init` shows which function each property is.
  private struct Functions: Sendable {
    typealias Pointer = OpaquePointer

    let context: @convention(c) (Pointer) -> Pointer?
    let setData: @convention(c) (Pointer, Int32, UnsafeMutableRawPointer?) -> Int32
    let getData: @convention(c) (Pointer, Int32) -> UnsafeMutableRawPointer?
    let certificate: @convention(c) (Pointer) -> Pointer?
    let free: @convention(c) (Pointer) -> Void
    let subject: @convention(c) (Pointer) -> Pointer?
    let printName: @convention(c) (Pointer, Pointer, Int32, UInt) -> Int32
    let notAfter: @convention(c) (Pointer) -> Pointer?
    let printTime: @convention(c) (Pointer, Pointer) -> Int32
    let findExtension: @convention(c) (Pointer, Int32, Int32) -> Int32
    let `extension`: @convention(c) (Pointer, Int32) -> Pointer?
    let printExtension: @convention(c) (Pointer, Pointer, UInt, Int32) -> Int32
    let memory: @convention(c) () -> Pointer?
    let newBIO: @convention(c) (Pointer) -> Pointer?
    let freeBIO: @convention(c) (Pointer) -> Int32
    let control: @convention(c) (Pointer, Int32, Int, UnsafeMutablePointer<UnsafePointer<UInt8>?>) -> Int
    /// The index under which a context (`SSL_CTX`) keeps its `PeerCertificate`.
    let index: Int32

    /// The functions; `nil` without `OpenSSL.loaded`, or if `init` throws.
    static let loaded: Functions? = OpenSSL.loaded == nil ? nil : try? Functions()

    private init() throws(OpenSSL.MissingFunction) {
      context = try OpenSSL.function("SSL_get_SSL_CTX")
      setData = try OpenSSL.function("SSL_CTX_set_ex_data")
      getData = try OpenSSL.function("SSL_CTX_get_ex_data")
      certificate = try OpenSSL.function("SSL_get1_peer_certificate")
      free = try OpenSSL.function("X509_free")
      subject = try OpenSSL.function("X509_get_subject_name")
      printName = try OpenSSL.function("X509_NAME_print_ex")
      notAfter = try OpenSSL.function("X509_get0_notAfter")
      printTime = try OpenSSL.function("ASN1_TIME_print")
      findExtension = try OpenSSL.function("X509_get_ext_by_NID")
      `extension` = try OpenSSL.function("X509_get_ext")
      printExtension = try OpenSSL.function("X509V3_EXT_print")
      memory = try OpenSSL.function("BIO_s_mem")
      newBIO = try OpenSSL.function("BIO_new")
      freeBIO = try OpenSSL.function("BIO_free")
      control = try OpenSSL.function("BIO_ctrl")
      let newIndex: OpenSSL.NewIndex = try OpenSSL.function("CRYPTO_get_ex_new_index")
      // OpenSSL calls this closure when it frees the context. The closure releases the object that `attach`
      // retained for the context.
      index = newIndex(netopt_ex_index_context, 0, nil, nil, nil) { _, certificate, _, _, _, _ in
        if let certificate { Unmanaged<PeerCertificate>.fromOpaque(certificate).release() }
      }
      guard index >= 0 else { throw OpenSSL.MissingFunction() }
    }
  }
}
