import NetOptCore

/// Reads the options of a scheme from JSON, as JSON Lines and the command line give them (docs/signing.md).
package enum SchemeOptions {
  /// Makes a scheme.
  ///
  /// - Parameters:
  ///   - options: the object, or `nil` for the defaults.
  ///   - isLenient: whether a verifier in `rfc9421` insists on components only when the options name them; the assurance is then weak.
  ///   - keys: where the platform's key is, for signing in `sealed-key`.
  package static func scheme(
    _ name: SchemeName, _ options: JSONPart?, isLenient: Bool, keys: KeyRing
  ) throws(OptionFault) -> any SigningScheme {
    let kind = name.kind
    do {
      for member in try options?.members() ?? [] where !kind.optionNames.contains(member.name) {
        throw member.value.fault("\(name.rawValue) has no such option")
      }
      return try kind.scheme(options, isLenient: isLenient, keys: keys).get()
    } catch let fault as JSONFault {
      throw OptionFault(detail: "\(fault.place): \(fault.rule)")
    } catch {
      throw OptionFault(detail: (error as? SigningFault)?.detail ?? "\(error)")
    }
  }

  /// A member of the options that is one of some words.
  static func word<Word: RawRepresentable & CaseIterable>(
    _ options: JSONPart?, _ name: String
  ) throws(JSONFault) -> Word? where Word.RawValue == String {
    guard let part = try options?.member(name) else { return nil }
    guard let word = Word(rawValue: try part.string()) else {
      throw part.fault("is \(Word.allCases.map(\.rawValue).joined(separator: " or "))")
    }
    return word
  }
}

/// What is wrong with the options of a scheme.
package struct OptionFault: Error, Hashable, Sendable {
  /// The place and the rule.
  package let detail: String
}
