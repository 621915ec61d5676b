/// A certificate with its private key, by which a client identifies itself to servers (mutual TLS).
///
/// The client reads and checks the files when it is made. When a file changes, the client reads all files of
/// the certificate again. New connections then use the new certificate, and no request uses an older
/// connection. If the new files do not fit together, the client keeps the old certificate and reports why to
/// `warningHandler`.
public struct ClientCertificate: Sendable {
  /// Returns the passphrase of an encrypted key. The client calls it when it reads the key.
  public typealias Passphrase = @Sendable () throws -> String

  /// Where bytes come from.
  package enum Source: Hashable, Sendable {
    case file(String)
    case bytes([UInt8])

    /// The path of the file; `nil` for bytes.
    package var path: String? { if case .file(let path) = self { path } else { nil } }
  }

  /// The form of certificate and key.
  package enum Form: Hashable, Sendable {
    /// PEM (RFC 7468). Without `key`, the key is beside the certificate.
    case pem(certificate: Source, key: Source?)
    /// PKCS #12 (RFC 7292).
    case pkcs12(Source)

    /// What the certificate is made of.
    package var sources: [Source] {
      switch self {
      case .pem(let certificate, let key): [certificate] + (key.map { [$0] } ?? [])
      case .pkcs12(let source): [source]
      }
    }
  }

  package let form: Form
  package let passphrase: Passphrase?

  /// A certificate in PEM files, of at most 64 KiB each.
  ///
  /// - Parameters:
  ///   - certificateFile: the path of the file with the certificate, and then the certificates of the
  ///     authorities between it and the root, if there are any.
  ///   - keyFile: the path of the file with the private key; `nil` if the key is in `certificateFile`.
  ///   - passphrase: returns the passphrase; `nil` for a key that is not encrypted.
  public init(certificateFile: String, keyFile: String? = nil, passphrase: Passphrase? = nil) {
    form = .pem(certificate: .file(certificateFile), key: keyFile.map { .file($0) })
    self.passphrase = passphrase
  }

  /// A certificate in PEM form. The parameters are those of the initializer for files.
  public init(certificate: [UInt8], key: [UInt8]? = nil, passphrase: Passphrase? = nil) {
    form = .pem(certificate: .bytes(certificate), key: key.map { .bytes($0) })
    self.passphrase = passphrase
  }

  /// A certificate and its key in a file in PKCS #12 form (`.p12`, `.pfx`), of at most 64 KiB.
  public init(pkcs12File: String, passphrase: Passphrase? = nil) {
    form = .pkcs12(.file(pkcs12File))
    self.passphrase = passphrase
  }

  /// A certificate and its key in PKCS #12 form.
  public init(pkcs12: [UInt8], passphrase: Passphrase? = nil) {
    form = .pkcs12(.bytes(pkcs12))
    self.passphrase = passphrase
  }

  /// Returns a function that reads a passphrase from an environment variable.
  public static func passphrase(inVariable name: String) -> Passphrase {
    {
      guard let value = ProcessEnvironment.variables[name] else {
        throw NetOptError(
          .invalidConfiguration, phase: .tls,
          "the environment variable \(name), which should have the passphrase, is not set")
      }
      return value
    }
  }
}

extension ClientCertificate: CustomStringConvertible, CustomReflectable {
  /// The names of the files. Never the key.
  public var description: String {
    let files = form.sources.map { $0.path.map(FileBytes.shown) ?? "bytes" }
    return "client certificate (\(files.joined(separator: ", ")))"
  }

  /// A mirror without children, so that a dump does not show the key.
  public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
