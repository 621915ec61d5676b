import NetOpt
import NetOptCore

/// The options of commands that make requests about TLS, with the names of curl's.
enum TLSOptions {
  static let certificate = Option(
    "cert", takes: .required("FILE"),
    "the client certificate (PEM, or PKCS #12 if FILE ends in .p12 or .pfx); the passphrase of its key is in NETOPT_KEY_PASSPHRASE",
    environment: "NETOPT_CERT")
  static let key = Option(
    "key", takes: .required("FILE"), "the private key of --cert (PEM); default: in the file of --cert",
    environment: "NETOPT_KEY")
  static let pins = Option(
    "pinnedpubkey", takes: .required("PINS"),
    "accept only servers whose public key has one of these SHA-256 hashes, as sha256//BASE64;sha256//BASE64")
  static let revocation = Option(
    "crlfile", takes: .required("FILE"), "refuse certificates that the lists in FILE (PEM) revoke")
  static let oldest12 = Option("tlsv1.2", "use TLS 1.2 or later; the default")
  static let oldest13 = Option("tlsv1.3", "use TLS 1.3 or later")
  static let newest = Option("tls-max", takes: .required("VERSION"), "use at most this version: 1.2 or 1.3")
  static let ciphers = Option(
    "ciphers", takes: .required("LIST"), "the cipher suites of TLS 1.2, in OpenSSL's form")
  static let suites = Option(
    "tls13-ciphers", takes: .required("LIST"), "the cipher suites of TLS 1.3, separated by colons")

  /// The options as a group of the help text.
  static let group = OptionGroup(
    "TLS", [certificate, key, pins, revocation, oldest12, oldest13, newest, ciphers, suites])

  /// The variable with the passphrase of the client certificate's key.
  static let passphrase = "NETOPT_KEY_PASSPHRASE"

  /// Returns the TLS settings from the arguments and the environment.
  ///
  /// - Throws: `UsageError` for an invalid value.
  static func settings(
    _ arguments: Arguments, in context: CommandContext
  ) throws(UsageError) -> ClientConfiguration.TLS {
    var settings = ClientConfiguration.TLS()
    settings.caFile = arguments.value(of: ClientOptions.caFile)
    settings.revocationFile = arguments.value(of: revocation)
    settings.clientCertificate = try clientCertificate(arguments, in: context)
    if let text = arguments.value(of: pins) { settings.pins["*"] = try list(of: text) }
    if arguments.last(of: [oldest12, oldest13]) == oldest13 { settings.minimumVersion = .tls13 }
    if let text = arguments.value(of: newest) {
      guard let version = TLSVersion(rawValue: text) else {
        throw UsageError("--tls-max takes 1.2 or 1.3, not \"\(text.printable(20))\"")
      }
      settings.maximumVersion = version
    }
    settings.cipherList = arguments.value(of: ciphers)
    settings.cipherSuites = arguments.value(of: suites)
    // As of curl; the library ignores the variable.
    settings.keyLog = context.environment["SSLKEYLOGFILE"].flatMap { $0.isEmpty ? nil : $0 }
    return settings
  }

  private static func clientCertificate(
    _ arguments: Arguments, in context: CommandContext
  ) throws(UsageError) -> ClientCertificate? {
    guard let file = arguments.value(of: certificate) else {
      if arguments.value(of: key) != nil {
        throw UsageError("--key needs --cert, the certificate of the key")
      }
      return nil
    }
    let phrase = context.environment[passphrase]
    let source = phrase.map { phrase in { @Sendable () -> String in phrase } }
    guard ![".p12", ".pfx"].contains(where: { file.lowercased().hasSuffix($0) }) else {
      return ClientCertificate(pkcs12File: file, passphrase: source)
    }
    return ClientCertificate(
      certificateFile: file, keyFile: arguments.value(of: key), passphrase: source)
  }

  /// Splits a list of pins as curl does.
  private static func list(of text: String) throws(UsageError) -> [String] {
    let pins = text.split(separator: ";", omittingEmptySubsequences: false).map(String.init)
    for pin in pins where PublicKeyPin(pin) == nil {
      throw UsageError(
        "--pinnedpubkey takes hashes of public keys as sha256//BASE64, separated by semicolons; not \"\(pin.printable(60))\""
      )
    }
    return pins
  }
}
