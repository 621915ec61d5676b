import NetOptCore

/// Reads the options of a scheme from JSON, from JSON Lines or the command line (docs/signing.md).
package enum SchemeOptions {
  /// Makes a scheme.
  ///
  /// - Parameters:
  ///   - options: the object; `nil` for the defaults.
  ///   - isLenient: whether a verifier in `rfc9421` requires components only when the options name them. The
  ///     assurance is then weak if a signature does not cover the whole request.
  ///   - keys: the ring that has the platform's key, for signing in `sealed-key`.
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

  /// The value of an option that must be one of several words; `nil` if the option is not set.
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

/// A fault in the options of a scheme.
package struct OptionFault: Error, Hashable, Sendable {
  /// The location and the rule that it breaks.
  package let detail: String
}
