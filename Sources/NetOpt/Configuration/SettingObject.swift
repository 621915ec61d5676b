import NetOptCore

/// An object in a configuration file. Its functions read one member each into a setting, and leave the
/// setting unchanged if the member is missing or has a fault. `finish` reports the members that none of them
/// has read.
final class SettingObject {
  private let value: SettingValue
  private let members: [(key: String, value: SettingValue)]
  /// The index of each member in `members`.
  private let indices: [String: Int]
  /// The keys that were asked for, whether the object has them or not.
  private var known: [String] = []
  /// The keys that `forbid` has reported.
  private var refused: Set<String> = []

  /// Reports a fault and returns `nil` if the value is not an object.
  init?(_ value: SettingValue, _ allowed: String = "an object") {
    guard let members = value.members(allowed) else { return nil }
    self.value = value
    self.members = members
    indices = Dictionary(members.indices.map { (members[$0].key, $0) }) { first, _ in first }
  }

  /// Where faults are reported.
  var report: SettingReport { value.report }

  /// Whether the object has a member.
  func has(_ key: String) -> Bool { indices[key] != nil }

  /// Returns the value of a member; `nil` if the object does not have it.
  func member(_ key: String) -> SettingValue? {
    known.append(key)
    return indices[key].map { members[$0].value }
  }

  /// Reports a fault if the object does not have a member.
  func require(_ keys: String...) {
    for key in keys where indices[key] == nil { refuse(key, "is missing") }
  }

  /// Reports a fault of a member, which may be missing.
  func refuse(_ key: String, _ message: String) {
    report.refuse(value.path.key(key).description, message)
  }

  /// Reports a fault if the object has a member with this key, which is not a setting. The message says why
  /// it is none, for example because a password does not belong in the file.
  func forbid(_ key: String, _ message: String) {
    guard let index = indices[key] else { return }
    // The key does not count as known, so that no message suggests it.
    refused.insert(key)
    members[index].value.refuse(message)
  }

  /// Reports a fault if the object has two members that exclude each other.
  func exclude(_ key: String, _ other: String) {
    guard let index = indices[key], indices[other] != nil else { return }
    members[index].value.refuse("cannot be combined with \(other); remove one of them")
  }

  /// Reports the members that no function has read.
  func finish() {
    for (key, value) in members where !known.contains(key) && !refused.contains(key) {
      let meant = { EditDistance.closest(to: key, among: self.known).map { "; did you mean \($0)?" } ?? "" }
      value.refuse("is not a setting\(meant())")
    }
  }

  /// Reads an object with its own settings.
  func object(_ key: String, _ read: (SettingObject) -> Void) {
    guard let value = member(key), let object = SettingObject(value) else { return }
    read(object)
    object.finish()
  }

  // MARK: Settings

  /// Reads true or false.
  func flag(_ key: String, _ setting: inout Bool) {
    guard let value = member(key), let new = value.flag() else { return }
    set(&setting, new, value, .bool(new))
  }

  /// Reads a whole number.
  func count(_ key: String, _ setting: inout Int, _ range: SettingRange<Int>) {
    guard let value = member(key), let number = value.integer(range.words) else { return }
    guard let new = Int(exactly: number), range.contains(new) else {
      return value.refuse("is \(number); allowed: \(range.words)")
    }
    set(&setting, new, value, .integer(number))
  }

  /// Reads a number that may have a fraction.
  func number(_ key: String, _ setting: inout Double, _ range: SettingRange<Double>) {
    guard let value = member(key), let new = value.number(range.words) else { return }
    guard range.contains(new) else { return value.refuse("is \(new); allowed: \(range.words)") }
    set(&setting, new, value, .number(new))
  }

  /// Reads a duration as a whole number of the unit in the key, which ends in `_ms` or `_s`.
  func duration(_ key: String, _ setting: inout Duration, _ range: SettingRange<Duration>) {
    var new: Duration? = setting
    duration(key, &new, range)
    setting = new ?? setting
  }

  /// Reads a duration that is `nil` by default.
  func duration(_ key: String, _ setting: inout Duration?, _ range: SettingRange<Duration>) {
    guard let value = member(key), let number = value.integer(range.words) else { return }
    let isMilliseconds = key.hasSuffix("_ms")
    let new = isMilliseconds ? Duration.milliseconds(number) : .seconds(number)
    guard range.contains(new) else {
      return value.refuse("is \(number) \(isMilliseconds ? "ms" : "s"); allowed: \(range.words)")
    }
    set(&setting, new, value, .integer(number))
  }

  /// Reads one of the words of an enumeration.
  func word<Word: RawRepresentable<String> & CaseIterable & Equatable>(
    _ key: String, _ setting: inout Word
  ) {
    var new: Word? = setting
    word(key, &new)
    setting = new ?? setting
  }

  /// Reads one of the words of an enumeration; the setting is `nil` by default.
  func word<Word: RawRepresentable<String> & CaseIterable & Equatable>(
    _ key: String, _ setting: inout Word?
  ) {
    guard let value = member(key), let text = value.choice(Word.allCases.map(\.rawValue)) else { return }
    set(&setting, Word(rawValue: text), value, .string(text))
  }

  /// Reads a text.
  ///
  /// - Parameter isValid: whether a text is permitted.
  func text(
    _ key: String, _ setting: inout String, _ allowed: String = "a text", mayBeEmpty: Bool = false,
    _ isValid: (String) -> Bool = { _ in true }
  ) {
    var new: String? = setting
    text(key, &new, allowed, mayBeEmpty: mayBeEmpty, isValid)
    setting = new ?? setting
  }

  /// Reads a text that is `nil` by default.
  func text(
    _ key: String, _ setting: inout String?, _ allowed: String = "a text", mayBeEmpty: Bool = false,
    _ isValid: (String) -> Bool = { _ in true }
  ) {
    guard let value = member(key), let new = value.text(allowed, mayBeEmpty: mayBeEmpty) else { return }
    guard isValid(new) else { return value.refuse("is not \(allowed)") }
    set(&setting, new, value, .string(new))
  }

  /// Reads the path of a file or folder.
  func file(_ key: String, _ setting: inout String?) {
    guard let value = member(key), let new = value.file() else { return }
    set(&setting, new, value, .string(new))
  }

  /// Reads an array of different texts.
  ///
  /// - Parameters:
  ///   - allowed: a permitted text in words.
  ///   - read: returns the text of an element, or reports a fault and returns `nil`.
  func texts(_ key: String, _ setting: inout [String], _ read: (SettingValue) -> String?, _ allowed: String) {
    guard let value = member(key), let new = Self.texts(value, allowed, read) else { return }
    set(&setting, new, value, .array(new.map(JSONValue.string)))
  }

  /// Returns an array of different texts; `nil` after a fault.
  static func texts(
    _ value: SettingValue, _ allowed: String, _ read: (SettingValue) -> String?
  ) -> [String]? {
    var texts: [String] = []
    var seen: Set<String> = []
    let count = value.report.faultCount
    let isArray = value.forEachElement(allowed) { element in
      guard let text = read(element) else { return }
      if !seen.insert(text).inserted { element.refuse("is in the array already") }
      texts.append(text)
    }
    return isArray && value.report.faultCount == count ? texts : nil
  }

  private func set<Value: Equatable>(
    _ setting: inout Value, _ new: Value, _ value: SettingValue, _ shown: JSONValue
  ) {
    if setting != new { value.change(to: shown) }
    setting = new
  }
}
