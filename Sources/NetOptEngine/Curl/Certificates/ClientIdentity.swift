import COpenSSL
import FoundationEssentials
package import NetOptCore
import NetOptLocking

/// The certificate with which a client identifies itself, and its private key, in OpenSSL's form. Safe to use
/// from any thread.
///
/// Unchecked sendable: nothing changes after the creation, and OpenSSL lets several threads use the objects.
package final class ClientIdentity: @unchecked Sendable {
  /// The certificate (`X509`) and its private key (`EVP_PKEY`), which this object frees.
  private let certificate, key: OpaquePointer
  /// The certificates of the authorities between the certificate and the root (`STACK_OF(X509)`), which this
  /// object frees; `nil` for none.
  private let chain: OpaquePointer?

  /// The maximum size of a file in bytes.
  private static let maximumBytes = 64 << 10

  /// The longest time for reading a certificate and its key, in milliseconds.
  private static let longestRead: Int32 = 10_000

  /// Reads a certificate and its key, on a thread of its own: a file says how often its passphrase is hashed,
  /// up to 2^31 times.
  ///
  /// - Throws: `invalidConfiguration` or `unreadableFile`, with the file and the fault; `unsupported` without
  ///   OpenSSL; and the error that the passphrase closure threw.
  package static func read(_ source: ClientCertificate) throws(NetOptError) -> ClientIdentity {
    let result = OwnThread.perform(within: longestRead) { () -> Result<ClientIdentity, NetOptError> in
      do throws(NetOptError) { return .success(try ClientIdentity(source)) } catch { return .failure(error) }
    }
    guard let result else {
      throw fault(
        source.form.sources[0],
        "cannot be read within \(longestRead / 1000) s (encrypt the key again, with fewer iterations), or this machine provides no thread"
      )
    }
    return try result.get()
  }

  /// Reads a certificate and its key.
  ///
  /// - Throws: `invalidConfiguration` or `unreadableFile`, with the file and the fault; `unsupported` without
  ///   OpenSSL; and the error that the passphrase closure threw.
  private init(_ source: ClientCertificate) throws(NetOptError) {
    guard let functions = Functions.loaded else { throw OpenSSL.missing("a client certificate") }
    let parts: Parts
    switch source.form {
    case .pem(let certificate, let key):
      parts = try Self.pem(certificate, key, source.passphrase, functions)
    case .pkcs12(let bundle): parts = try Self.pkcs12(bundle, source.passphrase, functions)
    }
    certificate = parts.certificate
    key = parts.key
    chain = parts.chain
    guard functions.hasUsableType(key) else {
      throw Self.fault(
        source.form.sources.last ?? source.form.sources[0],
        "has a private key of a type that TLS does not use, or on an unnamed curve")
    }
    guard functions.hasUsableSize(key) else {
      throw Self.fault(
        source.form.sources.last ?? source.form.sources[0],
        "has an RSA key of more than \(Functions.mostBits) bits, or numbers that no RSA key of its size has; a signature with it would hold up all other calls"
      )
    }
    guard functions.matches(certificate, key) == 1 else {
      // `deinit` frees the parts.
      throw Self.fault(source.form.sources[0], "does not belong to the private key\(Self.ofKey(source.form))")
    }
  }

  deinit {
    Functions.loaded?.freeCertificate(certificate)
    Functions.loaded?.freeKey(key)
    if let chain { Functions.loaded?.freeChain(chain) }
  }

  /// Makes the connections of a context identify themselves with the certificate when the server asks.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  /// - Returns: false when OpenSSL refuses the certificate.
  func use(in context: OpaquePointer) -> Bool {
    Functions.loaded?.use(context, certificate, key, chain, 1) == 1
  }

  /// The certificate in DER.
  package var bytes: [UInt8] {
    guard let functions = Functions.loaded else { return [] }
    let count = Int(functions.encode(certificate, nil))
    guard count > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: count) { bytes, initialized in
      var end = bytes.baseAddress
      initialized = functions.encode(certificate, &end) == count ? count : 0
    }
  }

  /// A certificate, its key and its chain, which the owner must free.
  private typealias Parts = (certificate: OpaquePointer, key: OpaquePointer, chain: OpaquePointer?)

  // MARK: Reading

  /// Reads a certificate and its key in PEM form.
  private static func pem(
    _ source: ClientCertificate.Source, _ keySource: ClientCertificate.Source?,
    _ passphrase: ClientCertificate.Passphrase?, _ functions: Functions
  ) throws(NetOptError) -> Parts {
    let text = try bytes(of: source)
    guard !AuthorityFile.describesCurve(text) else {
      throw fault(source, "has a key on an elliptic curve that is given by parameters (RFC 5480)")
    }
    let certificates = PEMObjects.read(text, functions.readCertificate, functions.freeCertificate)
    guard let certificates, !certificates.isEmpty else {
      throw fault(source, "has no valid certificate in PEM form (-----BEGIN CERTIFICATE-----)")
    }
    let key: OpaquePointer
    do throws(NetOptError) {
      key = try Self.key(in: keySource ?? source, passphrase, functions)
    } catch {
      for certificate in certificates { functions.freeCertificate(certificate) }
      throw error
    }
    let chain = certificates.count > 1 ? functions.newStack() : nil
    for certificate in certificates.dropFirst() {
      if chain.map({ functions.push($0, certificate) }) ?? 0 <= 0 { functions.freeCertificate(certificate) }
    }
    return (certificates[0], key, chain)
  }

  /// The labels of private keys in PEM form: RFC 5958, RFC 8017 and RFC 5915.
  private static let keyLabels: Set = [
    "PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY",
  ]
  /// The object identifiers in DER of the types of keys that TLS uses: RSA, RSASSA-PSS, elliptic curves,
  /// Ed25519, Ed448, and ML-DSA (2.16.840.1.101.3.4.3.17 to 19). A key with none of them is refused before
  /// OpenSSL decodes it: a DSA or Diffie-Hellman key may take minutes. `Functions.hasUsableType` checks the
  /// decoded key.
  private static let keyTypes: [[UInt8]] = [
    [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x11],
    [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x12],
    [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x13],
    [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01],
    [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a],
    [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01], [0x2b, 0x65, 0x70], [0x2b, 0x65, 0x71],
  ]

  /// Reads a private key in PEM form.
  private static func key(
    in source: ClientCertificate.Source, _ passphrase: ClientCertificate.Passphrase?, _ functions: Functions
  ) throws(NetOptError) -> OpaquePointer {
    let text = try bytes(of: source)
    let block = PEMBlock.all(in: text).first { keyLabels.contains($0.label) }
    guard let block else {
      throw fault(source, "has no private key in PEM form (-----BEGIN PRIVATE KEY-----)")
    }
    let isOfKnownType = keyTypes.contains { block.bytes.firstRange(ofBytes: $0) != nil }
    guard block.label != "PRIVATE KEY" || isOfKnownType, !CurveParameters.occur(in: block.bytes) else {
      throw fault(source, "has a private key of a type that TLS does not use, or on an unnamed curve")
    }
    let isEncrypted =
      block.label == "ENCRYPTED PRIVATE KEY" || text.firstRange(ofBytes: "Proc-Type: 4,ENCRYPTED") != nil
    var secret: [CChar] = []
    if isEncrypted { secret = try Self.secret(passphrase, of: source) }
    defer { wipe(&secret) }
    let key = withUnsafeMutablePointer(to: &secret) { secret in
      PEMObjects.withBIO(text) { bio in
        functions.readKey(
          bio, nil,
          { buffer, size, _, data in
            guard let buffer, let secret = data?.assumingMemoryBound(to: [CChar].self),
              !secret.pointee.isEmpty,
              secret.pointee.count <= Int(size)
            else { return -1 }
            for (index, byte) in secret.pointee.enumerated() { buffer[index] = byte }
            return Int32(secret.pointee.count)
          }, UnsafeMutableRawPointer(secret))
      }
    }
    guard let key else {
      throw fault(
        source,
        isEncrypted
          ? "has a private key that the passphrase does not decrypt" : "has a private key that is damaged")
    }
    return key
  }

  /// Reads a certificate and its key in PKCS #12 form.
  private static func pkcs12(
    _ source: ClientCertificate.Source, _ passphrase: ClientCertificate.Passphrase?, _ functions: Functions
  ) throws(NetOptError) -> Parts {
    let bytes = try bytes(of: source)
    guard let bundle = PEMObjects.withBIO(bytes, { functions.readBundle($0, nil) }) else {
      throw fault(source, "is not in PKCS #12 form (RFC 7292)")
    }
    defer { functions.freeBundle(bundle) }
    var secret = passphrase == nil ? [] : try Self.secret(passphrase, of: source)
    defer { wipe(&secret) }
    var (key, certificate, chain): (OpaquePointer?, OpaquePointer?, OpaquePointer?) = (nil, nil, nil)
    secret.append(0)
    let isParsed = secret.withUnsafeBufferPointer { secret in
      PEMObjects.clearingErrors {
        functions.parseBundle(bundle, secret.baseAddress, &key, &certificate, &chain)
      }
    }
    guard isParsed == 1, let key, let certificate else {
      if let key { functions.freeKey(key) }
      if let certificate { functions.freeCertificate(certificate) }
      if let chain { functions.freeChain(chain) }
      throw fault(
        source,
        isParsed == 1
          ? "has no certificate with its private key"
          : "cannot be decrypted: the passphrase is wrong, or it is encrypted with an old cipher that OpenSSL does not accept (make it again with: openssl pkcs12 -legacy …)"
      )
    }
    return (certificate, key, chain)
  }

  /// Returns the bytes of a source.
  private static func bytes(of source: ClientCertificate.Source) throws(NetOptError) -> [UInt8] {
    let bytes: [UInt8]
    switch source {
    case .file(let path):
      bytes = try FileBytes.read(path, upTo: maximumBytes, as: "the client certificate", in: .tls)
    case .bytes(let given): bytes = given
    }
    guard bytes.count <= maximumBytes else {
      throw fault(source, "has more than \(maximumBytes >> 10) KiB")
    }
    return bytes
  }

  /// Returns the bytes of the passphrase, without a zero at the end.
  private static func secret(
    _ passphrase: ClientCertificate.Passphrase?, of source: ClientCertificate.Source
  ) throws(NetOptError) -> [CChar] {
    guard let passphrase else {
      throw fault(source, "is encrypted; give the passphrase (ClientCertificate, passphrase)")
    }
    do {
      return try passphrase().utf8.map { CChar(bitPattern: $0) }
    } catch {
      throw error as? NetOptError
        ?? fault(source, "is encrypted, and its passphrase cannot be read: \(error)")
    }
  }

  private static func wipe(_ secret: inout [CChar]) {
    for index in secret.indices { secret[index] = 0 }
  }

  /// The end of a sentence that names the file of the key, if it is another file than the certificate's.
  private static func ofKey(_ form: ClientCertificate.Form) -> String {
    guard case .pem(_, let key?) = form else { return "" }
    return key.path.map { " in \(FileBytes.shown($0))" } ?? ""
  }

  /// Returns the error for a fault of a source.
  ///
  /// - Parameter what: the fault, as the end of a sentence whose subject is the source.
  private static func fault(_ source: ClientCertificate.Source, _ what: String) -> NetOptError {
    let name = source.path.map { "the client certificate \(FileBytes.shown($0))" } ?? "the client certificate"
    return NetOptError(.invalidConfiguration, phase: .tls, "\(name) \(what)")
  }

  /// OpenSSL's functions. Their types are those of the man pages, and nothing checks the types:
  /// SSL_CTX_use_cert_and_key(3), d2i_X509(3), X509_check_private_key(3), PEM_read_bio_X509_AUX(3),
  /// PEM_read_bio_PrivateKey(3), d2i_PKCS12_bio(3), PKCS12_parse(3), OPENSSL_sk_push(3), EVP_PKEY_is_a(3),
  /// EVP_PKEY_get_group_name(3), EVP_PKEY_get_bn_param(3). `init` shows which function each property is.
  private struct Functions: Sendable {
    typealias Pointer = OpaquePointer
    typealias Free = PEMObjects.Free
    typealias Out = UnsafeMutablePointer<Pointer?>

    let use: @convention(c) (Pointer, Pointer, Pointer, Pointer?, Int32) -> Int32
    let encode: @convention(c) (Pointer, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    let matches: @convention(c) (Pointer, Pointer) -> Int32
    let readCertificate, readKey: PEMObjects.Read
    let readBundle: @convention(c) (Pointer, UnsafeRawPointer?) -> Pointer?
    let parseBundle: @convention(c) (Pointer, UnsafePointer<CChar>?, Out, Out, Out) -> Int32
    let newStack: @convention(c) () -> Pointer?
    let push: @convention(c) (Pointer, Pointer) -> Int32
    let freeCertificate, freeKey, freeBundle: Free
    private let pop: @convention(c) (Pointer, Free) -> Void

    /// The maximum size of an RSA key in bits. A signature with a key of 8,192 bits takes 30 ms on the loop.
    static let mostBits: Int32 = 8192

    /// Whether a signature with a key takes a bounded time: the key is not RSA, or none of its numbers is longer
    /// than in a valid RSA key of at most `mostBits` bits.
    func hasUsableSize(_ key: Pointer) -> Bool {
      RSANumbers.areUsable(most: Self.mostBits) { name in
        var number: Pointer?
        guard getNumber(key, name, &number) == 1, let number else { return nil }
        defer { freeNumber(number) }
        return bits(number)
      }
    }

    /// The types of keys that TLS uses, by OpenSSL's names (EVP_PKEY_is_a(3)), except `EC`: `hasUsableType`
    /// accepts such a key only if its curve has a name.
    private static let types = [
      "RSA", "RSA-PSS", "ED25519", "ED448", "ML-DSA-44", "ML-DSA-65", "ML-DSA-87",
    ]

    /// Whether TLS uses keys of this type. A signature with a DSA key, or on a curve that is given by
    /// parameters, may take minutes.
    func hasUsableType(_ key: Pointer) -> Bool {
      if isA(key, "EC") == 1 {
        var name = [CChar](repeating: 0, count: 80)
        return groupName(key, &name, name.count, nil) == 1
      }
      return Self.types.contains { isA(key, $0) == 1 }
    }

    private let isA: @convention(c) (Pointer, UnsafePointer<CChar>) -> Int32
    private let groupName:
      @convention(c) (Pointer, UnsafeMutablePointer<CChar>, Int, UnsafeMutablePointer<Int>?) -> Int32
    private let getNumber: @convention(c) (Pointer, UnsafePointer<CChar>, Out) -> Int32
    private let bits: @convention(c) (Pointer) -> Int32
    private let freeNumber: Free

    /// Frees a chain and its certificates.
    func freeChain(_ chain: Pointer) { pop(chain, freeCertificate) }

    /// The functions; `nil` without `OpenSSL.loaded`, or if `init` throws.
    static let loaded: Functions? = OpenSSL.loaded == nil ? nil : try? Functions()

    private init() throws(OpenSSL.MissingFunction) {
      use = try OpenSSL.function("SSL_CTX_use_cert_and_key")
      encode = try OpenSSL.function("i2d_X509")
      matches = try OpenSSL.function("X509_check_private_key")
      readCertificate = try OpenSSL.function("PEM_read_bio_X509_AUX")
      readKey = try OpenSSL.function("PEM_read_bio_PrivateKey")
      readBundle = try OpenSSL.function("d2i_PKCS12_bio")
      parseBundle = try OpenSSL.function("PKCS12_parse")
      newStack = try OpenSSL.function("OPENSSL_sk_new_null")
      push = try OpenSSL.function("OPENSSL_sk_push")
      freeCertificate = try OpenSSL.function("X509_free")
      freeKey = try OpenSSL.function("EVP_PKEY_free")
      freeBundle = try OpenSSL.function("PKCS12_free")
      pop = try OpenSSL.function("OPENSSL_sk_pop_free")
      isA = try OpenSSL.function("EVP_PKEY_is_a")
      groupName = try OpenSSL.function("EVP_PKEY_get_group_name")
      getNumber = try OpenSSL.function("EVP_PKEY_get_bn_param")
      bits = try OpenSSL.function("BN_num_bits")
      freeNumber = try OpenSSL.function("BN_clear_free")
    }
  }
}
