import NetOptCore

/// A mistake that a signer may make. The raw values are stable: programs may rely on them.
public enum SignerMistake: String, Hashable, Sendable, CaseIterable {
  /// Spaces in parameters were written as "+" instead of "%20".
  case plusForSpace = "plus-for-space"
  /// Percent-encodings were written with hexadecimal digits in lower case instead of upper case.
  case lowerCaseHex = "lower-case-hex"
  /// Parameters with empty values were left out. In `salted-md5` without the option `keep_empty`, the mistake
  /// is the opposite: they were signed.
  case emptiesDropped = "empties-dropped"
  /// Parameters with equal names were signed in a wrong order. Either they were sorted by value although the
  /// scheme keeps their order, or their order was kept although the scheme sorts them by value.
  case duplicateOrder = "duplicate-order"
  /// Parameters were signed in the order of the query, although the scheme sorts them.
  case paramsNotSorted = "params-not-sorted"
  /// Parameters were percent-encoded twice. In `salted-md5` without the option `encode`, they were encoded
  /// once although the scheme does not encode them; with the option, they were not encoded.
  case encodedTwice = "encoded-twice"
  /// Parameters were not percent-encoded.
  case notEncoded = "not-encoded"
  /// A line end was added after the last line of the string to sign or of the canonical request.
  case trailingNewline = "trailing-newline"
  /// The lines of the string to sign or of the canonical request were joined with CR LF instead of LF.
  case carriageReturns = "carriage-returns"
  /// The default port was signed, although the scheme leaves it out.
  case portKept = "port-kept"
  /// The path was signed as it was written: without decoding, encoding or normalisation.
  case pathNotNormalised = "path-not-normalised"
  /// Dot segments and empty segments were removed from the path, although the scheme keeps them.
  case pathNormalised = "path-normalised"
  /// The path was encoded twice, although the scheme encodes it once.
  case pathEncodedTwice = "path-encoded-twice"
  /// The path was encoded once, although the scheme encodes it twice.
  case pathEncodedOnce = "path-encoded-once"
  /// The method was signed in lower case.
  case methodLowerCase = "method-lower-case"
  /// The query was not signed.
  case queryLeftOut = "query-left-out"
  /// An empty body was signed in place of the body.
  case bodyLeftOut = "body-left-out"
  /// The body was signed as JSON without white space, but sent in another form.
  case bodyCompact = "body-compact"
  /// The body was signed as JSON without white space and with sorted members, but sent in another form.
  case bodySorted = "body-sorted"
  /// The body was signed as JSON with spaces after colons and commas, but sent in another form.
  case bodySpaced = "body-spaced"
  /// The body was signed as JSON with sorted members and with spaces after colons and commas, but sent in
  /// another form.
  case bodySortedAndSpaced = "body-sorted-and-spaced"
  /// The body was signed with a line end at its end and sent without it, or signed without it and sent with
  /// it.
  case bodyLineEnd = "body-line-end"
  /// Another version of the key was used, which may be older or newer.
  case otherKeyVersion = "older-key-version"
  /// Another salt was used, or no salt.
  case wrongSalt = "wrong-salt"
  /// Another scheme, hash function or algorithm was used.
  case wrongScheme = "wrong-scheme"
  /// The time was signed in milliseconds instead of seconds.
  case timeInMilliseconds = "time-in-milliseconds"

  /// The mistake in words, for people.
  public var meaning: String {
    switch self {
    case .plusForSpace: "spaces in parameters were signed as +, not as %20"
    case .lowerCaseHex: "percent-encodings were signed with hexadecimal digits in lower case"
    case .emptiesDropped: "parameters with empty values were left out"
    case .duplicateOrder: "parameters of one name were signed in another order than the scheme requires"
    case .paramsNotSorted: "parameters were signed in the order of the query, not sorted"
    case .encodedTwice: "parameters were encoded twice"
    case .notEncoded: "parameters were not encoded"
    case .trailingNewline: "a line end after the last line was signed"
    case .carriageReturns: "lines were joined with CR LF, not with LF"
    case .portKept: "the default port was signed; the scheme drops it"
    case .pathNotNormalised: "the path was signed as it was written"
    case .pathNormalised: "dot segments and double slashes were removed from the path before signing"
    case .pathEncodedTwice: "the path was encoded twice"
    case .pathEncodedOnce: "the path was encoded once; the scheme encodes it twice"
    case .methodLowerCase: "the method was signed in lower case"
    case .queryLeftOut: "the query was not signed"
    case .bodyLeftOut: "an empty body was signed"
    case .bodyCompact: "the body was signed as JSON without white space, and sent in another form"
    case .bodySorted: "the body was signed as JSON with sorted members, and sent in another form"
    case .bodySpaced:
      "the body was signed as JSON with spaces after colons and commas, and sent in another form"
    case .bodySortedAndSpaced: "the body was signed as JSON, sorted and spaced, and sent in another form"
    case .bodyLineEnd:
      "the body was signed with a line end at its end and sent without it, or signed without it and sent with it"
    case .otherKeyVersion: "another version of the key was used"
    case .wrongSalt: "another salt was used, or none"
    case .wrongScheme: "another scheme or hash was used"
    case .timeInMilliseconds: "the time was signed in milliseconds"
    }
  }
}

/// A set of mistakes that a signer makes in one signature.
package typealias Mistakes = Set<SignerMistake>

extension Set<SignerMistake> {
  /// The style in which a signer that makes these mistakes percent-encodes the parameters.
  var style: PercentEncoding.Style {
    if isEmpty { return .plain }
    var style = PercentEncoding.Style.plain
    if contains(.plusForSpace) { style.insert(.plusForSpace) }
    if contains(.lowerCaseHex) { style.insert(.lowerHex) }
    if contains(.encodedTwice) { style.insert(.twice) }
    if contains(.notEncoded) { style.insert(.none) }
    return style
  }

  /// The order in which a signer that makes these mistakes signs the parameters.
  ///
  /// - Parameter right: the correct order in the scheme.
  func order(insteadOf right: QueryParameters.Order) -> QueryParameters.Order {
    if contains(.paramsNotSorted) { return .asGiven }
    guard contains(.duplicateOrder) else { return right }
    return right == .byKey ? .byKeyAndValue : .byKey
  }

  /// Returns a string to sign, or a canonical request, with the line ends that a signer that makes these
  /// mistakes writes. Only `carriageReturns` and `trailingNewline` change the string.
  func applied(toWhole string: [UInt8]) -> [UInt8] {
    if isEmpty { return string }
    var string = string
    if contains(.carriageReturns) {
      string = string.flatMap { $0 == 0x0a ? [0x0d, 0x0a] : [$0] }
    }
    if contains(.trailingNewline) { string.append(0x0a) }
    return string
  }

  /// Returns the body that a signer with these mistakes signed before it sent `body`. Returns `body` itself
  /// if none of the mistakes concerns the body. Returns `nil` if a mistake concerns the form of JSON, but
  /// `body` is not JSON, or an object in it has two members with the same name.
  func body(_ body: [UInt8]) -> [UInt8]? {
    if isEmpty { return body }
    if contains(.bodyLeftOut) { return [] }
    if contains(.bodyLineEnd) { return body.last == 0x0a ? Array(body.dropLast()) : body + [0x0a] }
    let shapes: [(SignerMistake, JSONShape)] = [
      (.bodyCompact, .compact), (.bodySorted, .sorted), (.bodySpaced, .spaced),
      (.bodySortedAndSpaced, .sortedAndSpaced),
    ]
    guard let shape = shapes.first(where: { contains($0.0) })?.1 else { return body }
    return shape.applied(to: body)
  }
}
