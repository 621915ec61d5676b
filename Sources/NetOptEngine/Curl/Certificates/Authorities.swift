import Glibc
package import NetOptCore

/// The certificate authorities that certificates are verified against.
enum Authorities: Hashable, Sendable {
  /// Authorities in PEM form that a setting has or names. The name is that of the setting or the file.
  case given([UInt8], name: String)
  /// The file that libcurl was built with (CURLINFO_CAINFO(3)); `nil` if libcurl was built without one.
  case system(String?)

  /// The failure of a leg that must verify a certificate and has no authorities. Looks at the file to say
  /// why.
  var failure: LegFailure {
    switch self {
    case .given(_, let name):
      return LegFailure(
        .authorities,
        "no certificate can be verified: \(name) (tls.caFile, --cacert) has a certificate that OpenSSL cannot read"
      )
    case .system(let file):
      let why =
        file.map { "\($0) \(Self.fault(of: $0))" }
        ?? "libcurl was built without a file of authorities"
      return LegFailure(
        .authorities,
        "this machine has no trusted authorities, so no certificate can be verified: \(why); install the package ca-certificates, or name a file of authorities with tls.caFile (--cacert)"
      )
    }
  }

  /// Why no authorities can be read from a file, as the end of a sentence.
  private static func fault(of file: String) -> String {
    access(file, R_OK) == 0
      ? "has no certificate in PEM form" : "cannot be read (\(String(cString: strerror(errno))))"
  }

  /// The maximum size of the system's file of authorities in bytes. Debian's has 220 KB.
  private static let mostOfSystem = 16 << 20

  /// Reads the system's authorities, and parses authorities and revocation lists. With the system's
  /// authorities this takes 20 ms of CPU, so it must not run on the loop, unless it parses later.
  ///
  /// - Parameters:
  ///   - revocations: the revocation lists in PEM form; `nil` for none.
  ///   - parsesLater: whether the store stays empty until `TrustStore.parse` is called.
  /// - Returns: the store, or why there is none.
  func load(revocations: [UInt8]?, parsesLater: Bool = false) -> Trust {
    let bytes: [UInt8]?
    switch self {
    case .given(let given, _): bytes = given
    case .system(let file):
      bytes = file.flatMap {
        try? FileBytes.read($0, upTo: Self.mostOfSystem, as: "the system's authorities", in: .tls)
      }
    }
    guard let store = bytes.flatMap({ TrustStore(authorities: $0, revocations: revocations) }) else {
      return .failure(failure)
    }
    if !parsesLater { store.parse() }
    return store.isDamaged ? .failure(failure) : .store(store)
  }
}

/// A file of revocation lists in PEM form (RFC 5280, section 5).
package enum RevocationFile {
  /// The maximum size in bytes.
  static let maximumBytes = 16 << 20

  /// Reads a file of revocation lists.
  ///
  /// - Throws: `unreadableFile`; also for a file that is too large or has no list.
  package static func read(_ path: String) throws(NetOptError) -> [UInt8] {
    let bytes = try FileBytes.read(
      path, upTo: maximumBytes, as: "the file with the revocation lists", in: .tls)
    guard bytes.count <= maximumBytes, TrustStore.hasRevocations(bytes) else {
      throw NetOptError(
        .unreadableFile, phase: .tls,
        "the file with the revocation lists, \(FileBytes.shown(path)), has more than \(maximumBytes >> 20) MiB, or no valid list in PEM form (-----BEGIN X509 CRL-----)"
      )
    }
    return bytes
  }
}
