import NetOptCore

extension NetOpt1: SchemeKind {
  static let optionNames = ["headers"]

  static func scheme(
    _ options: JSONPart?, isLenient: Bool, keys: KeyRing
  ) throws(JSONFault) -> Result<any SigningScheme, SigningFault> {
    try made(of: options).map { $0 }
  }

  /// Makes the scheme from its options. `sealed-key` also calls this with its own options, which include
  /// those of the scheme that it contains.
  static func made(of options: JSONPart?) throws(JSONFault) -> Result<NetOpt1, SigningFault> {
    let fields = try options?.member("headers")?.strings()
    return Result { () throws(SigningFault) in try NetOpt1(fields: fields) }
  }
}
