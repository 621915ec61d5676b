package import NetOptCore

/// The directives of `Cache-Control` (RFC 9111, section 5.2) that a private cache looks at, of a request or a response, with
/// those of RFC 5861 and RFC 8246. Durations are milliseconds.
///
/// What is not well-formed is taken for what is safe: a `max-age` that is no number makes a response stale, a permission that
/// cannot be read is none. Of a directive that occurs twice the first one counts (section 4.2.1).
package struct CacheControl: Hashable, Sendable {
  /// `max-age`; zero when it cannot be read.
  package var maxAge: Int64?
  /// `no-cache` without names of fields.
  package var noCache = false
  /// The fields that `no-cache="…"` names, in small letters.
  package var uncachedFields: [String] = []
  /// `no-store`.
  package var noStore = false
  /// `must-revalidate`.
  package var mustRevalidate = false
  /// `must-understand`.
  package var mustUnderstand = false
  /// `public`, or `private`: the answer is marked as one that may be stored.
  package var isMarked = false
  /// `immutable`.
  package var immutable = false
  /// `stale-while-revalidate`.
  package var staleWhileRevalidate: Int64?
  /// `stale-if-error`.
  package var staleIfError: Int64?
  /// `only-if-cached`.
  package var onlyIfCached = false
  /// `max-stale`; without a value it has no limit.
  package var maxStale: Int64?
  /// `min-fresh`.
  package var minFresh: Int64?

  /// Whether there was more than is read: it may forbid anything.
  package var isTooLong = false

  /// Whether the response must not be stored. `must-understand` lifts `no-store` for a status that the cache understands
  /// (section 5.2.2.3).
  var forbidsStoring: Bool { isTooLong || noStore && !mustUnderstand }

  /// Reads the directives of a message, unless there are more than `FieldText.mostMembers`, or a line has more than `FieldText.mostBytes`.
  package init(_ fields: HeaderFields) {
    var count = 0
    for line in fields.values(of: "Cache-Control") {
      guard line.utf8.count <= FieldText.mostBytes else {
        refuse()
        return
      }
      var reader = DirectiveReader(line)
      while let directive = reader.next() {
        count += 1
        guard count <= FieldText.mostMembers else {
          refuse()
          return
        }
        take(directive)
      }
    }
  }

  private mutating func refuse() {
    isTooLong = true
    noStore = true
  }

  private mutating func take(_ directive: Directive) {
    switch directive.name {
    case "max-age":
      if maxAge == nil { maxAge = directive.duration ?? 0 }
    case "no-cache":
      let members = FieldText.members([directive.value ?? ""]) ?? []
      let names = FieldText.names(members)
      uncachedFields += names
      // What names no field, or more than are read, is meant for the whole response, whatever was meant by it.
      if names.count < members.count || members.isEmpty { noCache = true }
    case "no-store": noStore = true
    case "must-revalidate": mustRevalidate = true
    case "must-understand": mustUnderstand = true
    case "public", "private": isMarked = true
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
    default: takeBroken(directive)
    }
  }

  /// `no-store; max-age=0` is no list, and is meant to forbid.
  private mutating func takeBroken(_ directive: Directive) {
    switch directive.name.prefix(while: { $0 != ";" && $0 != " " && $0 != "\t" }) {
    case "no-store": noStore = true
    case "no-cache": noCache = true
    case "must-revalidate": mustRevalidate = true
    default: break
    }
  }
}

/// One directive.
struct Directive {
  /// The name in small letters; with what follows it, when that is not well-formed.
  var name: String
  /// The value without quotes, `nil` without one.
  var value: String?
  /// Whether there are spaces around "=", which no form allows.
  var isSpaced = false

  /// The value as a number of seconds, in milliseconds; `nil` when it is none.
  var duration: Int64? { isSpaced ? nil : value.flatMap(DeltaSeconds.milliseconds) }
}

/// Reads `name`, `name=token` and `name="quoted"` separated by commas. Anything else is skipped to the next comma.
struct DirectiveReader {
  private var rest: Substring.UTF8View

  init(_ text: String) { rest = text[...].utf8 }

  /// The next directive, `nil` at the end.
  mutating func next() -> Directive? {
    rest = rest.drop { $0 == 0x2c || FieldText.isSpace($0) }
    guard !rest.isEmpty else { return nil }
    let name = rest.prefix { $0 != 0x3d && $0 != 0x2c }
    rest = rest[name.endIndex...]
    var directive = Directive(name: FieldText.trimmed(Substring(name)).loweredASCII)
    guard rest.first == 0x3d else { return directive }
    rest = rest.dropFirst()
    directive.isSpaced = name.last.map(FieldText.isSpace) == true || rest.first.map(FieldText.isSpace) == true
    directive.value = rest.first == 0x22 ? quoted() ?? token() : token()
    return directive
  }

  private mutating func token() -> String {
    let value = rest.prefix { $0 != 0x2c }
    rest = rest[value.endIndex...]
    return String(FieldText.trimmed(Substring(value)))
  }

  /// `nil` for a string that is not closed: it would hide the directives behind it.
  private mutating func quoted() -> String? {
    var left = rest.dropFirst()
    var value: [UInt8] = []
    var isClosed = false
    while let byte = left.popFirst() {
      isClosed = byte == 0x22
      if isClosed { break }
      // What is escaped stands for itself.
      if byte == 0x5c { left.popFirst().map { value.append($0) } } else { value.append(byte) }
    }
    guard isClosed else { return nil }
    let more = left.prefix { $0 != 0x2c }
    rest = left[more.endIndex...]
    // What follows the closing quote makes the value another one than it says.
    if more.contains(where: { !FieldText.isSpace($0) }) { value += more }
    return String(decoding: value, as: UTF8.self)
  }
}

/// Numbers of seconds (RFC 9111, section 1.2.2).
package enum DeltaSeconds {
  /// What stands for more than can be counted: 2^31 seconds, in milliseconds.
  static let most: Int64 = 2_147_483_648_000

  /// Reads digits; `nil` for anything else.
  package static func milliseconds(_ text: some StringProtocol) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    guard let seconds = Int64(text), seconds < most / 1000 else { return most }
    return seconds * 1000
  }
}

/// Texts of fields.
enum FieldText {
  static func isSpace(_ byte: UInt8) -> Bool { ByteClass.isSpace(byte) }

  /// Without the white space around it.
  static func trimmed(_ text: Substring) -> Substring { Substring(ByteClass.trimmed(text.utf8)) }

  /// How many members of a list are read. Real ones have ten. A head has room for 120,000, and reading them takes 0.1 s.
  static let mostMembers = 256
  /// How long a value may be that is read member by member. A line of a head has 100 KB at most, and three times that when it is not UTF-8.
  static let mostBytes = 16 * 1024

  /// The members of a list that are not empty; `nil` when there are more than `mostMembers`, or one of the values has more than `mostBytes`.
  static func members(_ values: [String]) -> [Substring]? {
    guard values.allSatisfy({ $0.utf8.count <= mostBytes }) else { return nil }
    guard values.reduce(values.count, { $0 + $1.utf8.count { $0 == 0x2c } }) <= mostMembers else {
      return nil
    }
    return values.flatMap { $0.split(byte: 0x2c).map(trimmed).filter { !$0.isEmpty } }
  }

  /// The names of fields in a list, in small letters. What is no token names none, and may take long to compare (`CombiningMarks`): a quoted
  /// string can have escapes between its marks.
  static func names(_ members: [Substring]) -> [String] {
    members.map(\.loweredASCII).filter { HeaderFields.isToken($0) }
  }
}
