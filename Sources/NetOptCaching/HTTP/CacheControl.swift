package import NetOptCore

/// The directives of `Cache-Control` that a private cache uses, of a request or of a response (RFC 9111,
/// section 5.2; RFC 5861; RFC 8246). Durations are in milliseconds; `nil` means that the directive is missing
/// or, for directives other than `max-age`, malformed.
///
/// A malformed directive allows nothing. A `max-age` that is not a number counts as zero and makes a response
/// stale. A malformed `stale-while-revalidate`, `stale-if-error`, `max-stale` or `min-fresh` has no effect.
/// Directives between semicolons, as in `max-age=60; no-store`, are malformed. Those that restrict the cache count
/// all the same.
/// When `max-age` occurs twice, the first occurrence counts (section 4.2.1). When another directive with a
/// duration occurs twice, the first occurrence that is not malformed counts.
package struct CacheControl: Hashable, Sendable {
  /// `max-age`; zero when the value is not a number.
  package var maxAge: Int64?
  /// `no-cache` for the whole message: without field names, or with a list that is malformed or too long.
  package var noCache = false
  /// The field names in `no-cache="…"`, in lowercase.
  package var uncachedFields: [String] = []
  /// `no-store`.
  package var noStore = false
  /// `must-revalidate`.
  package var mustRevalidate = false
  /// `must-understand`.
  package var mustUnderstand = false
  /// `public` or `private`. Both let a private cache store a response whose status is not storable by
  /// default.
  package var isPublicOrPrivate = false
  /// `immutable`.
  package var immutable = false
  /// `stale-while-revalidate`, in milliseconds after the response became stale.
  package var staleWhileRevalidate: Int64?
  /// `stale-if-error`, in milliseconds after the response became stale.
  package var staleIfError: Int64?
  /// `only-if-cached`.
  package var onlyIfCached = false
  /// `max-stale`; `Int64.max` when the directive has no value and therefore no limit.
  package var maxStale: Int64?
  /// `min-fresh`.
  package var minFresh: Int64?

  /// Whether the field exceeds the limits of the parser. Such a message is not stored, because the part that
  /// was not read may forbid storing.
  package var isTooLong = false

  /// Whether these directives of a response forbid storing it. With `must-understand`, `no-store` does not
  /// count for a status that the cache understands (section 5.2.2.3). This property does not check the
  /// status; `Storing` checks it first.
  var forbidsStoring: Bool { isTooLong || noStore && !mustUnderstand }

  /// Reads the directives of a message. `isTooLong` and `noStore` become true when the message has more than
  /// `FieldText.mostMembers` directives, or lines of more than `FieldText.mostBytes` bytes together.
  package init(_ fields: HeaderFields) {
    var count = 0
    let lines = fields.values(of: "Cache-Control")
    guard FieldText.isShort(lines) else {
      refuse()
      return
    }
    for line in lines {
      var reader = DirectiveReader(line)
      while let directive = reader.next() {
        count += 1
        guard count <= FieldText.mostMembers else {
          refuse()
          return
        }
        apply(directive)
      }
    }
  }

  /// Marks the field as too long.
  private mutating func refuse() {
    isTooLong = true
    noStore = true
  }

  /// Adds a directive to those that were read before.
  private mutating func apply(_ directive: Directive) {
    switch directive.name {
    case "max-age":
      if maxAge == nil { maxAge = directive.duration ?? 0 }
    case "no-cache":
      let members = FieldText.members([directive.value ?? ""]) ?? []
      let names = FieldText.names(members)
      uncachedFields += names
      // If some members are not field names, or the list is empty or too long, `no-cache` applies to the
      // whole response.
      if names.count < members.count || members.isEmpty { noCache = true }
    case "no-store": noStore = true
    case "must-revalidate": mustRevalidate = true
    case "must-understand": mustUnderstand = true
    case "public", "private": isPublicOrPrivate = true
    case "immutable": immutable = true
    case "only-if-cached": onlyIfCached = true
    case "stale-while-revalidate":
      if staleWhileRevalidate == nil { staleWhileRevalidate = directive.duration }
    case "stale-if-error":
      if staleIfError == nil { staleIfError = directive.duration }
    case "min-fresh":
      if minFresh == nil { minFresh = directive.duration }
    case "max-stale":
      if maxStale == nil { maxStale = directive.value == nil ? .max : directive.duration }
    default: restrict(by: directive.name)
    }
    if let more = directive.afterSemicolon { restrict(by: more.loweredASCII) }
  }

  /// Applies the directives that restrict the cache, in a text where semicolons separate directives.
  private mutating func restrict(by text: String) {
    for part in text.utf8.split(separator: 0x3b) {
      switch Substring(FieldText.firstWord(part)) {
      case "no-store": noStore = true
      case "no-cache": noCache = true
      case "must-revalidate": mustRevalidate = true
      default: break
      }
    }
  }
}

/// A directive of `Cache-Control`.
struct Directive {
  /// The name in lowercase. For a malformed directive it includes the text after the name.
  var name: String
  /// The value without quotes; `nil` for a directive without a value.
  var value: String?
  /// Whether there are spaces around "=", which the syntax does not allow.
  var isSpaced = false
  /// The text after the first semicolon that is not between quotes, which the syntax does not allow; `nil` without
  /// such a semicolon.
  var afterSemicolon: Substring?

  /// The value in milliseconds, for a directive whose value is a number of seconds; `nil` for other values.
  var duration: Int64? { isSpaced ? nil : value.flatMap(DeltaSeconds.milliseconds) }
}

/// Parses the directives `name`, `name=token` and `name="quoted"` of one line. Commas separate the
/// directives. Text that has none of these forms becomes part of a name or a value.
struct DirectiveReader {
  /// The part of the line that was not read.
  private var rest: Substring.UTF8View

  init(_ text: String) { rest = text[...].utf8 }

  /// The next directive; `nil` at the end.
  mutating func next() -> Directive? {
    rest = rest.drop { $0 == 0x2c || FieldText.isSpaceOrTab($0) }
    guard !rest.isEmpty else { return nil }
    let name = rest.prefix { $0 != 0x3d && $0 != 0x2c }
    rest = rest[name.endIndex...]
    var directive = Directive(name: FieldText.trimmed(Substring(name)).loweredASCII)
    guard rest.first == 0x3d else { return directive }
    rest = rest.dropFirst()
    directive.isSpaced =
      name.last.map(FieldText.isSpaceOrTab) == true || rest.first.map(FieldText.isSpaceOrTab) == true
    let text = rest
    let value = rest.first == 0x22 ? quoted() : nil
    directive.value = value?.text ?? token()
    let unquoted = text[(value?.end ?? text.startIndex)..<rest.startIndex]
    directive.afterSemicolon = unquoted.firstIndex(of: 0x3b).map {
      Substring(unquoted[unquoted.index(after: $0)...])
    }
    return directive
  }

  /// Reads up to the next comma.
  private mutating func token() -> String {
    let value = rest.prefix { $0 != 0x2c }
    rest = rest[value.endIndex...]
    return String(FieldText.trimmed(Substring(value)))
  }

  /// Reads a quoted string and the text up to the next comma. Returns `nil` and reads nothing when the closing quote
  /// is missing. The string would otherwise contain all directives after it.
  ///
  /// - Returns: the value, and the index after the closing quote.
  private mutating func quoted() -> (text: String, end: String.Index)? {
    var left = rest.dropFirst()
    var value: [UInt8] = []
    var isClosed = false
    while let byte = left.popFirst() {
      isClosed = byte == 0x22
      if isClosed { break }
      // A backslash escapes the next byte.
      if byte == 0x5c { left.popFirst().map { value.append($0) } } else { value.append(byte) }
    }
    guard isClosed else { return nil }
    let more = left.prefix { $0 != 0x2c }
    rest = left[more.endIndex...]
    // Text after the closing quote becomes part of the value, because the quoted part alone could be valid.
    if more.contains(where: { !FieldText.isSpaceOrTab($0) }) { value += more }
    return (String(decoding: value, as: UTF8.self), left.startIndex)
  }
}

/// Numbers of seconds in fields (RFC 9111, section 1.2.2).
package enum DeltaSeconds {
  /// The maximum result: 2^31 seconds, in milliseconds. Larger numbers of seconds give this result too.
  static let most: Int64 = 2_147_483_648_000

  /// Converts decimal digits to milliseconds; `nil` for any other text.
  package static func milliseconds(_ text: some StringProtocol) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    guard let seconds = Int64(text), seconds < most / 1000 else { return most }
    return seconds * 1000
  }
}

/// Functions for the text of header fields.
enum FieldText {
  static func isSpaceOrTab(_ byte: UInt8) -> Bool { ByteClass.isSpaceOrTab(byte) }

  /// The first word: the bytes after leading white space, up to the next white space or "=".
  static func firstWord(_ text: Substring.UTF8View) -> Substring.UTF8View {
    text.drop(while: isSpaceOrTab).prefix { $0 != 0x3d && !isSpaceOrTab($0) }
  }

  /// The text without white space at both ends.
  static func trimmed(_ text: Substring) -> Substring { Substring(ByteClass.trimmed(text.utf8)) }

  /// The maximum number of members of a list. Real lists have about ten. A response head has room for 120,000
  /// members, and parsing these would take 0.1 s.
  static let mostMembers = 256
  /// The maximum length of the lines that are parsed as one list, together and in bytes. The lines of a
  /// response head have up to 250 KB. The repair of bytes that are not UTF-8 can triple this length.
  static let mostBytes = 16 * 1024

  /// Whether lines have at most this many bytes together.
  static func isShort(_ lines: [String], most: Int = mostBytes) -> Bool {
    lines.reduce(0) { $0 + $1.utf8.count } <= most
  }

  /// The non-empty members of a list; `nil` when the list has more than `mostMembers` members, empty members
  /// included, or when the values have more than `mostBytes` bytes together. Every comma separates members,
  /// also a comma in a quoted string.
  static func members(_ values: [String]) -> [Substring]? {
    guard isShort(values) else { return nil }
    guard values.reduce(values.count, { $0 + $1.utf8.count { $0 == 0x2c } }) <= mostMembers else {
      return nil
    }
    return values.flatMap { $0.split(byte: 0x2c).map(trimmed).filter { !$0.isEmpty } }
  }

  /// The members that are tokens, in lowercase. Other members cannot be field names. They could also take
  /// long to compare, because a quoted string can hide a long run of combining marks behind escapes
  /// (`SlowText`).
  static func names(_ members: [Substring]) -> [String] {
    members.map(\.loweredASCII).filter { HeaderFields.isToken($0) }
  }
}
