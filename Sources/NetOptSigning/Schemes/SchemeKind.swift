/// The static properties of a scheme: its options, and how to recognise its requests.
protocol SchemeKind: Sendable {
  /// Whether the scheme cannot prevent changes or replays of a request.
  static var isWeak: Bool { get }

  /// The names of the scheme's options in JSON (docs/signing.md).
  static var optionNames: [String] { get }

  /// Makes a scheme from its options.
  ///
  /// - Parameters:
  ///   - options: the object, whose members have known names; `nil` for the defaults.
  ///   - isLenient: as for `SchemeOptions.scheme`.
  ///   - keys: the key ring.
  /// - Throws: `JSONFault` for a value that an option cannot have.
  /// - Returns: the scheme, or a failure for values that do not fit together.
  static func scheme(
    _ options: JSONPart?, isLenient: Bool, keys: KeyRing
  ) throws(JSONFault) -> Result<any SigningScheme, SigningFault>

  /// Whether a request seems to be signed in this scheme. A request that no scheme recognises counts as
  /// `netopt1`. A weak scheme recognises no request.
  static func recognises(_ request: SigningRequest) -> Bool
}

extension SchemeKind {
  static var isWeak: Bool { false }
  static func recognises(_ request: SigningRequest) -> Bool { false }
}

extension SchemeName {
  /// The static properties of the scheme.
  var kind: any SchemeKind.Type {
    switch self {
    case .netopt1: NetOpt1.self
    case .rfc9421: RFC9421.self
    case .sigv4: SigV4.self
    case .saltedMD5: SaltedMD5.self
    case .sealedKey: SealedKey.self
    }
  }

  /// Whether the scheme cannot prevent changes or replays of a request.
  public var isWeak: Bool { kind.isWeak }

  /// The scheme in which a request seems to be signed. The search starts with the last case of `SchemeName`:
  /// a scheme that contains another scheme is declared after it.
  package static func detected(in request: SigningRequest) -> SchemeName {
    allCases.reversed().first { $0.kind.recognises(request) } ?? .netopt1
  }
}
