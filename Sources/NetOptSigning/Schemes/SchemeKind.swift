/// What there is to know of a scheme before one is made: its options, and how its requests are recognised.
protocol SchemeKind: Sendable {
  /// Whether the scheme cannot keep a request from being changed or replayed.
  static var isWeak: Bool { get }

  /// The names of the options that it has in JSON (docs/signing.md).
  static var optionNames: [String] { get }

  /// Makes a scheme of its options.
  ///
  /// - Parameters:
  ///   - options: the object, whose members have known names; `nil` for the defaults.
  ///   - isLenient: as for `SchemeOptions.scheme`.
  ///   - keys: the key ring.
  /// - Throws: `JSONFault` for a value of another kind than the option has.
  /// - Returns: a failure for values that do not go together.
  static func scheme(
    _ options: JSONPart?, isLenient: Bool, keys: KeyRing
  ) throws(JSONFault) -> Result<any SigningScheme, SigningFault>

  /// Whether a request seems to be signed in this scheme. `netopt1` is assumed when no scheme says so; a weak scheme never does.
  static func recognises(_ request: SigningRequest) -> Bool
}

extension SchemeKind {
  static var isWeak: Bool { false }
  static func recognises(_ request: SigningRequest) -> Bool { false }
}

extension SchemeName {
  /// What there is to know of each scheme.
  var kind: any SchemeKind.Type {
    switch self {
    case .netopt1: NetOpt1.self
    case .rfc9421: RFC9421.self
    case .sigv4: SigV4.self
    case .saltedMD5: SaltedMD5.self
    case .sealedKey: SealedKey.self
    }
  }

  /// Whether the scheme cannot keep a request from being changed or replayed.
  public var isWeak: Bool { kind.isWeak }

  /// The scheme in which a request seems to be signed. The last case of `SchemeName` is asked first: a scheme that contains another one is declared
  /// behind it.
  package static func detected(in request: SigningRequest) -> SchemeName {
    allCases.reversed().first { $0.kind.recognises(request) } ?? .netopt1
  }
}
