import NetOptCore

/// Makes schemes from options in JSON. The options come from a line of a JSON Lines file (`SigningLine`),
/// from the command line or from the caller of the library. docs/signing.md describes the options of each
/// scheme.
package enum SchemeOptions {
  /// Makes a scheme.
  ///
  /// - Parameters:
  ///   - options: the options of the scheme as a JSON object; `nil` for the default options.
  ///   - isLenient: matters only to a verifier in `rfc9421` whose options name no components. If true, the
  ///     verifier requires no component, and a signature that leaves part of the request unsigned is valid
  ///     with the assurance `weak`. If false, the signature must cover everything that a signer signs by
  ///     default.
  ///   - keys: the key ring. A signer in `sealed-key` finds there the key that `platform_key_id` names, with
  ///     which it encrypts the caller's key.
  /// - Throws: `OptionFault` for an unknown option or an invalid value.
  package static func scheme(
    _ name: SchemeName, _ options: JSONPart?, isLenient: Bool, keys: KeyRing
  ) throws(OptionFault) -> any SigningScheme {
    let kind = name.kind
    do {
      for member in try options?.members() ?? [] where !kind.optionNames.contains(member.name) {
        throw member.value.fault("\(name.rawValue) does not have this option")
      }
      return try kind.scheme(options, isLenient: isLenient, keys: keys).get()
    } catch let fault as JSONFault {
      throw OptionFault(detail: "\(fault.location): \(fault.rule)")
    } catch {
      throw OptionFault(detail: (error as? SigningFault)?.detail ?? "\(error)")
    }
  }

  /// The value of an option whose values are the words of an enumeration; `nil` if the option is not set.
  static func word<Word: RawRepresentable & CaseIterable>(
    _ options: JSONPart?, _ name: String
  ) throws(JSONFault) -> Word? where Word.RawValue == String {
    guard let part = try options?.member(name) else { return nil }
    guard let word = Word(rawValue: try part.string()) else {
      throw part.fault("must be \(Word.allCases.map(\.rawValue).joined(separator: " or "))")
    }
    return word
  }
}

/// An unknown option of a scheme, or an option with an invalid value.
package struct OptionFault: Error, Hashable, Sendable {
  /// The location in the JSON text, and the rule that the value at this location breaks. For example
  /// `$.options.inner: must be netopt1 or salted-md5`.
  package let detail: String
}
