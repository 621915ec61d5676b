package import NetOptCore

/// The settings of the TLS connections to a host, with the content of the files that they name.
package struct TLSSettings: Sendable {
  /// The certificate authorities in PEM form to trust instead of the system's; `nil` for the system's.
  package var authorities: [UInt8]?
  /// The name of the setting or the file that has `authorities`, for messages.
  package var authoritiesName = "tls.caBytes"
  /// The file of the system's authorities; `nil` if libcurl was built without one.
  package var systemFile = CurlLibrary.authorityFile
  /// The revocation lists in PEM form; `nil` to check no revocation.
  package var revocations: [UInt8]?
  /// The oldest permitted version.
  package var minimumVersion = TLSVersion.tls12
  /// The newest permitted version; `nil` for the newest that the TLS library speaks.
  package var maximumVersion: TLSVersion?
  /// The permitted cipher suites of TLS 1.2 in OpenSSL's form; `nil` for OpenSSL's.
  package var cipherList: String?
  /// The permitted cipher suites of TLS 1.3, separated by colons; `nil` for OpenSSL's.
  package var cipherSuites: String?
  /// The certificate with which the client identifies itself; `nil` for none.
  package var identity: ClientIdentity?
  /// The pins of the server's key, one of which must match; empty for none.
  package var pins: [PublicKeyPin] = []

  /// Makes the default settings.
  package init() {}

  /// `cipherList` without the cipher suites that use no certificate or no encryption. With such a suite there
  /// would be no key to compare with the pins.
  var safeCipherList: String? { cipherList.map { $0 + ":!aNULL:!eNULL" } }

  /// The permitted versions, for messages.
  var versions: String {
    switch maximumVersion {
    case minimumVersion?: "only \(minimumVersion.rawValue)"
    case let newest?: "\(minimumVersion.rawValue) to \(newest.rawValue)"
    case nil: "\(minimumVersion.rawValue) or later"
    }
  }

  /// Whether settings differ from their defaults that only OpenSSL has.
  var needsOpenSSL: Bool {
    authorities != nil || revocations != nil || cipherList != nil || cipherSuites != nil
  }
}
