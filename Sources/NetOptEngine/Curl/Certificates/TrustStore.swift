import COpenSSL
import NetOptCore

/// What a client trusts, or why it can trust nothing.
enum Trust: Sendable {
  case store(TrustStore)
  case failure(LegFailure)

  /// The store; `nil` after a failure.
  var store: TrustStore? { if case .store(let store) = self { store } else { nil } }

  /// The failure; `nil` for a store.
  var failure: LegFailure? { if case .failure(let failure) = self { failure } else { nil } }
}

/// Trusted certificate authorities and revocation lists in OpenSSL's form.
///
/// libcurl can read the authorities too, but it does so on the loop's thread when a server first answers in a
/// handshake: 20 ms for the system's authorities, during which all other calls stand still.
///
/// Unchecked sendable: the store does not change after `parse`, and OpenSSL lets several threads use it. Until
/// then, one thread uses it: that of the load, or the loop.
final class TrustStore: @unchecked Sendable {
  /// OpenSSL's store, an `X509_STORE`, of which this object owns a reference. It is empty until `parse`.
  private let store: OpaquePointer
  /// The authorities and revocation lists that are not parsed yet.
  private var unparsed: (authorities: [UInt8], revocations: [UInt8]?)?
  /// Whether there is no authority, or a block cannot be read. Such a store is empty, unless OpenSSL ran out
  /// of memory, so that nothing can be verified against it. False until `parse`.
  private(set) var isDamaged = false

  /// Makes an empty store. `parse` fills it.
  ///
  /// - Parameters:
  ///   - authorities: the authorities in PEM form.
  ///   - revocations: the revocation lists in PEM form; `nil` to check no revocation. Otherwise the
  ///     certificates of every chain are checked, as by curl.
  /// - Returns: `nil` without OpenSSL.
  init?(authorities: [UInt8], revocations: [UInt8]?) {
    guard let functions = Functions.loaded, let store = functions.new() else { return nil }
    self.store = store
    unparsed = (authorities, revocations)
    // libcurl sets the same flags. A partial chain ends at a trusted certificate that is no root; with
    // revocation lists, it would end before the certificates whose lists are to be checked.
    let flags = revocations == nil ? netopt_partial_chain : netopt_check_revocation
    guard functions.setFlags(store, netopt_trusted_first | flags) == 1 else { return nil }
  }

  /// Parses the authorities and revocation lists, unless that has been done. Contexts that already use the
  /// store get them too.
  func parse() {
    guard let texts = unparsed, let functions = Functions.loaded else { return }
    unparsed = nil
    let authorities =
      PEMObjects.read(texts.authorities, functions.readCertificate, functions.freeCertificate) ?? []
    let lists = texts.revocations.map { PEMObjects.read($0, functions.readList, functions.freeList) ?? [] }
    defer {
      for authority in authorities { functions.freeCertificate(authority) }
      for list in lists ?? [] { functions.freeList(list) }
    }
    isDamaged =
      authorities.isEmpty || lists?.isEmpty == true
      // Without all lists, no authority is added: a revoked certificate would pass.
      || !(lists ?? []).allSatisfy { functions.addList(store, $0) == 1 }
      || !authorities.allSatisfy { functions.addCertificate(store, $0) == 1 }
  }

  /// Whether `parse` has been called.
  var isParsed: Bool { unparsed == nil }

  deinit { Functions.loaded?.free(store) }

  /// Whether a PEM text has revocation lists, and OpenSSL can read all of them.
  static func hasRevocations(_ text: [UInt8]) -> Bool {
    guard let functions = Functions.loaded,
      let lists = PEMObjects.read(text, functions.readList, functions.freeList)
    else { return false }
    defer { for list in lists { functions.freeList(list) } }
    return !lists.isEmpty
  }

  /// Makes the connections of a context verify certificates against this store, and against no other.
  ///
  /// The store goes beside the context's own store, which libcurl replaces later: libcurl 7.88 keeps the
  /// store of the first context for all contexts.
  ///
  /// - Parameter context: an `SSL_CTX` that libcurl has set up (CURLOPT_SSL_CTX_FUNCTION(3)).
  func use(in context: OpaquePointer) {
    // SSL_CTX_set1_verify_cert_store(3) is a macro for this. The context takes a reference of its own.
    _ = OpenSSL.loaded?.control(context, netopt_ctrl_set_verify_store, 1, store)
  }

  /// OpenSSL's functions. Their types are those of the man pages, and nothing checks the types:
  /// X509_STORE_new(3), X509_STORE_add_cert(3), X509_STORE_set_flags(3),
  /// PEM_read_bio_X509_AUX(3), PEM_read_bio_X509_CRL(3). `init` shows which function each property is.
  private struct Functions: Sendable {
    typealias Pointer = OpaquePointer
    typealias Add = @convention(c) (Pointer, Pointer) -> Int32
    typealias Free = PEMObjects.Free

    let new: @convention(c) () -> Pointer?
    let free: Free
    let setFlags: @convention(c) (Pointer, UInt) -> Int32
    let readCertificate, readList: PEMObjects.Read
    let addCertificate, addList: Add
    let freeCertificate, freeList: Free

    /// The functions; `nil` without `OpenSSL.loaded`, or if `init` throws.
    static let loaded: Functions? = OpenSSL.loaded == nil ? nil : try? Functions()

    private init() throws(OpenSSL.MissingFunction) {
      new = try OpenSSL.function("X509_STORE_new")
      free = try OpenSSL.function("X509_STORE_free")
      setFlags = try OpenSSL.function("X509_STORE_set_flags")
      readCertificate = try OpenSSL.function("PEM_read_bio_X509_AUX")
      readList = try OpenSSL.function("PEM_read_bio_X509_CRL")
      addCertificate = try OpenSSL.function("X509_STORE_add_cert")
      addList = try OpenSSL.function("X509_STORE_add_crl")
      freeCertificate = try OpenSSL.function("X509_free")
      freeList = try OpenSSL.function("X509_CRL_free")
    }
  }
}
