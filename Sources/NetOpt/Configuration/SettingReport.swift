package import NetOptCore

/// A rule that a configuration file or an environment variable breaks. The message quotes a value only if it
/// is a number, a path or a cipher list, because any other text may be a misplaced secret.
package struct SettingFault: Hashable, Sendable, CustomStringConvertible {
  /// The place in the file as a JSON path (RFC 9535), such as `$.dns.tries`; or the name of the variable.
  package let path: String
  /// The rule, and how to fix the fault.
  package let message: String

  /// Makes a fault. Replaces characters of the message that control a terminal.
  package init(_ path: String, _ message: String) {
    self.path = Self.shown(path)
    self.message = message.printable(1000)
  }

  /// Returns a path for messages: `[…]` takes the place of each key that can be neither a setting, nor a host
  /// with or without a port, nor a name of a header field. Such a key may contain a secret, as in
  /// `{"Cookie: a=b": ""}`.
  private static func shown(_ path: String) -> String {
    path.replacing(/\["((?:[^"\\]|\\.)*)"\]/) { match in
      match.output.1.wholeMatch(of: /[A-Za-z0-9._~*-]{1,100}(?::[0-9]{1,5})?/) == nil
        ? "[…]" : String(match.output.0)
    }
  }

  /// Path and rule on one line.
  package var description: String { "\(path): \(message)" }
}

/// A setting whose value differs from the default.
package struct SettingChange: Hashable, Sendable {
  /// The setting as a JSON path in the configuration file.
  package let path: String
  /// The value. Contains no secret: for a value from a variable that the file names, it is the variable's
  /// name.
  package let value: JSONValue
  /// The environment variable that set the value; `nil` for the file.
  package let variable: String?
}

/// Collects the faults and the changed settings while one configuration is read. Also holds the folder for
/// relative paths and the environment variables.
final class SettingReport {
  /// The maximum number of kept faults. No user reads more.
  private static let limit = 100

  /// The folder in which relative paths of the file begin.
  let folder: String
  /// The environment variables by name.
  let environment: [String: String]
  /// The first faults, at most 100.
  private(set) var faults: [SettingFault] = []
  /// The number of all faults.
  private(set) var faultCount = 0
  /// The settings that differ from their defaults, in the order of reading.
  private(set) var changes: [SettingChange] = []

  init(folder: String, environment: [String: String]) {
    self.folder = folder
    self.environment = environment
  }

  /// Whether an environment variable is set and not empty.
  func isSet(_ variable: String) -> Bool { environment[variable]?.isEmpty == false }

  /// Adds a fault. Evaluates path and message only for a fault that is kept.
  func refuse(_ path: @autoclosure () -> String, _ message: @autoclosure () -> String) {
    faultCount += 1
    if faults.count < Self.limit { faults.append(SettingFault(path(), message())) }
  }

  /// Records that the file sets a setting to another value than the default.
  func change(_ path: String, _ value: JSONValue) {
    changes.append(SettingChange(path: path, value: value, variable: nil))
  }

  /// Records that a variable sets a setting.
  ///
  /// - Parameters:
  ///   - other: another setting of the file that the variable replaces too.
  ///   - isDefault: whether the value is the default. If true, the call only removes the recorded changes of
  ///     the replaced settings.
  func change(
    _ path: String, _ value: JSONValue, by variable: String, replacing other: String? = nil,
    isDefault: Bool = false
  ) {
    changes.removeAll { $0.path == path || $0.path == other }
    if isDefault { return }
    changes.append(SettingChange(path: path, value: value, variable: variable))
  }

  /// Returns the path of a file that the configuration names. A relative path begins in the folder of the
  /// configuration file.
  func resolved(_ path: String) -> String {
    path.hasPrefix("/") || folder == "." ? path : folder == "/" ? "/" + path : folder + "/" + path
  }
}
