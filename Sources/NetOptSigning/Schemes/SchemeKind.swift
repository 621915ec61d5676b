/// The static properties of a scheme: its options, and how to recognise its requests.
protocol SchemeKind: Sendable {
  /// Whether the scheme is weak: an attacker can change signed requests, or replay them at any time.
  static var isWeak: Bool { get }

  /// The names of the scheme's options in JSON (docs/signing.md). `SchemeOptions` refuses all other names.
  static var optionNames: [String] { get }

  /// Makes a scheme from its options.
  ///
  /// - Parameters:
  ///   - options: a JSON object whose members all have names in `optionNames`; `nil` for the default options.
  ///   - isLenient: whether a verifier in `rfc9421` requires only the components that the options name. The
  ///     other schemes ignore it.
  ///   - keys: the key ring. `sealed-key` takes from it the key with which a signer encrypts the caller's
  ///     key.
  /// - Throws: `JSONFault` for a value that an option cannot have.
  /// - Returns: the scheme, or the fault of values that do not fit together.
  static func scheme(
    _ options: JSONPart?, isLenient: Bool, keys: KeyRing
  ) throws(JSONFault) -> Result<any SigningScheme, SigningFault>

  /// Whether a request has the fields or the query parameters of a signature in this scheme. A request that
  /// no scheme recognises counts as `netopt1`. `salted-md5` recognises no request, so that a weak scheme is
  /// used only when the caller names it.
  static func recognises(_ request: SigningRequest) -> Bool
}

extension SchemeKind {
  static var isWeak: Bool { false }
  static func recognises(_ request: SigningRequest) -> Bool { false }
}

extension SchemeName {
  /// The type that has the static properties of the scheme.
  var kind: any SchemeKind.Type {
    switch self {
    case .netopt1: NetOpt1.self
    case .rfc9421: RFC9421.self
    case .sigv4: SigV4.self
    case .saltedMD5: SaltedMD5.self
    case .sealedKey: SealedKey.self
    }
  }

  /// Whether the scheme is weak: an attacker can change signed requests, or replay them at any time. False
  /// for `sealed-key`, which is weak only if it contains a weak scheme.
  public var isWeak: Bool { kind.isWeak }

  /// The scheme in which a request seems to be signed: the last scheme in the order of `SchemeName` that
  /// recognises the request. `sealed-key` is the last of all, so a request that it recognises counts as
  /// `sealed-key`, whatever other fields the request has. A request that no scheme recognises counts as
  /// `netopt1`.
  package static func detected(in request: SigningRequest) -> SchemeName {
    allCases.reversed().first { $0.kind.recognises(request) } ?? .netopt1
  }
}
