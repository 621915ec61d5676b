import Glibc
import NetOptCore

/// The file with the certificate authorities that certificates are verified against.
enum Authorities: Hashable, Sendable {
  /// A file that a setting names.
  case named(String)
  /// The file that libcurl was built with (CURLINFO_CAINFO(3)); `nil` if libcurl was built without one.
  case system(String?)

  /// The failure of a leg that must verify a certificate and has no authorities. Looks at the file to say
  /// why.
  var failure: LegFailure {
    switch self {
    case .named(let file):
      return LegFailure(
        .authorities,
        "no certificate can be verified: the authorities in \(FileBytes.shown(file)), which tls.caFile (--cacert) names, \(Self.fault(of: file))"
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
}
