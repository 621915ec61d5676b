import NetOptCore
import NetOptRouting

/// A value in a configuration file, with its path. The functions that read it report a fault and return `nil`
/// if the value is not of the required kind.
struct SettingValue {
  private let element: JSONElement
  let path: JSONPath
  let report: SettingReport

  /// The maximum number of entries of an array or of an object with free keys.
  private static let mostEntries = 1000

  init(_ element: JSONElement, _ path: JSONPath, _ report: SettingReport) {
    self.element = element
    self.path = path
    self.report = report
  }

  /// Whether the value is a text.
  var isText: Bool { element.kind == .string }
  /// The JSON text of the value.
  var json: String { String(decoding: element.bytes, as: UTF8.self) }

  /// Reports a fault of the value.
  func refuse(_ message: @autoclosure () -> String) { report.refuse(path.description, message()) }

  /// Reports that the value is of the wrong kind.
  ///
  /// - Parameter allowed: the permitted values in words.
  func refuseKind(_ allowed: String) {
    let kind =
      switch element.kind {
      case .object: "an object"
      case .array: "an array"
      case .string: "a text"
      case .number: "a number"
      case .true: "true"
      case .false: "false"
      case .null: "null"
      }
    refuse("is \(kind); allowed: \(allowed)")
  }

  /// Records that the setting differs from its default.
  func change(to value: JSONValue) { report.change(path.description, value) }

  // MARK: Kinds

  /// True or false.
  func flag() -> Bool? {
    if element.kind == .true || element.kind == .false { return element.kind == .true }
    refuseKind("true or false")
    return nil
  }

  /// A whole number of 64 bits.
  ///
  /// - Parameter range: the permitted numbers in words.
  func integer(_ range: String) -> Int64? {
    guard element.kind == .number else {
      refuseKind("a whole number, \(range)")
      return nil
    }
    if let number = element.integer { return number }
    refuse("is not a whole number of 64 bits; allowed: \(range)")
    return nil
  }

  /// A number that may have a fraction.
  ///
  /// - Parameter range: the permitted numbers in words.
  func number(_ range: String) -> Double? {
    guard element.kind == .number else {
      refuseKind("a number, \(range)")
      return nil
    }
    // Every number of JSON is one that `Double` reads. A number out of its range is infinite.
    return Double(json)
  }

  /// A text without NUL.
  ///
  /// - Parameter allowed: the permitted texts in words.
  func text(_ allowed: String = "a text", mayBeEmpty: Bool = false) -> String? {
    guard let text = element.text else {
      refuseKind(allowed)
      return nil
    }
    if text.isEmpty, !mayBeEmpty {
      refuse("is empty; allowed: \(allowed)")
    } else if text.utf8.contains(0) {
      refuse("has a NUL; allowed: \(allowed)")
    } else {
      return text
    }
    return nil
  }

  /// One of some words.
  ///
  /// - Parameter rest: further permitted values in words, which follow the words in messages.
  func choice(_ words: [String], rest: String = "") -> String? {
    let allowed = words.map { "\"\($0)\"" }.joined(separator: ", ") + rest
    guard let text = element.text else {
      refuseKind(allowed)
      return nil
    }
    if words.contains(text) { return text }
    let meant = EditDistance.closest(to: text, among: words).map { "; did you mean \"\($0)\"?" } ?? ""
    refuse("is none of the permitted values; allowed: \(allowed)\(meant)")
    return nil
  }

  /// The path of a file or folder, resolved.
  func file() -> String? {
    guard let text = text("a path") else { return nil }
    // Judged without the folder, before which no key is recognised.
    if !FileBytes.isContent(text) { return report.resolved(text) }
    refuse("is not a path; name the file instead of its content, or begin a path with ./")
    return nil
  }

  /// An absolute URL without user name, query and fragment.
  func url() -> HTTPURL? {
    let form = "an absolute URL of http or https without user name, query and fragment"
    guard let text = text(form) else { return nil }
    // `HTTPURL` would drop the fragment. Its error quotes the text.
    guard !text.utf8.contains(where: "?#".utf8.contains), let url = try? HTTPURL(text) else {
      refuse("is not \(form)")
      return nil
    }
    change(to: .string(url.shown))
    return url
  }

  /// The name of a host, without a port.
  func host() -> String? {
    guard let text = text("a host name") else { return nil }
    if ClientConfiguration.host(text) != nil { return text }
    refuse("is not a host name; write it without scheme, port and path")
    return nil
  }

  /// An environment variable that is set and not empty: its name and its value.
  func variable() -> (name: String, value: String)? {
    let allowed = "the name of an environment variable: letters, digits and _"
    guard let name = text(allowed) else { return nil }
    guard ByteClass.isIdentifier(name) else {
      refuse("is not \(allowed)")
      return nil
    }
    // The message does not name the variable: a user may have written the secret itself.
    guard let value = report.environment[name], !value.isEmpty else {
      refuse("names an environment variable that is not set")
      return nil
    }
    return (name, value)
  }

  // MARK: Containers

  /// Calls a closure with each element of an array of at most 1,000 elements.
  ///
  /// - Parameter allowed: the permitted elements in words.
  /// - Returns: `false` after a fault of the array itself.
  func forEachElement(_ allowed: String, _ body: (SettingValue) -> Void) -> Bool {
    guard element.kind == .array else {
      refuseKind("an array of \(allowed)")
      return false
    }
    guard hasFewEntries() else { return false }
    var index = 0
    element.forEachElement { element in
      body(SettingValue(element, path.index(index), report))
      index += 1
      return true
    }
    return true
  }

  /// The members of an object, in order. Of two members with the same key, only the first.
  func members(_ allowed: String) -> [(key: String, value: SettingValue)]? {
    guard element.kind == .object else {
      refuseKind(allowed)
      return nil
    }
    guard hasFewEntries() else { return nil }
    var members: [(key: String, value: SettingValue)] = []
    var keys: Set<String> = []
    element.forEachMember { key, value in
      guard let key = key.text, keys.insert(key).inserted else { return }
      members.append((key, SettingValue(value, path.key(key), report)))
    }
    return members
  }

  private func hasFewEntries() -> Bool {
    if element.count <= Self.mostEntries { return true }
    refuse("has \(element.count) entries; allowed: at most \(Self.mostEntries)")
    return false
  }
}
