package import NetOptCore

/// A rule that a configuration file or an environment variable breaks. Of the values, it quotes only numbers,
/// paths and cipher lists, because another text may be a secret in the wrong place.
package struct SettingFault: Hashable, Sendable, CustomStringConvertible {
  /// The place in the file as a JSON path (RFC 9535), such as `$.dns.tries`; or the name of the variable.
  package let path: String
  /// The rule, and how to fix the fault.
  package let message: String

  /// Makes a fault. Replaces characters of the message that control a terminal.
  package init(_ path: String, _ message: String) {
    self.path = path
    self.message = message.printable(1000)
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

/// What the readers of one configuration share: where relative paths begin, the environment, and what was
/// found.
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

  /// Adds a fault. Evaluates path and message only for a fault that is kept.
  func refuse(_ path: @autoclosure () -> String, _ message: @autoclosure () -> String) {
    faultCount += 1
    if faults.count < Self.limit { faults.append(SettingFault(path(), message())) }
  }

  /// Notes that the file sets a setting to another value than the default.
  func change(_ path: String, _ value: JSONValue) {
    changes.append(SettingChange(path: path, value: value, variable: nil))
  }

  /// Notes that a variable sets a setting.
  ///
  /// - Parameter other: another setting of the file that the variable replaces too.
  func change(_ path: String, _ value: JSONValue, by variable: String, replacing other: String? = nil) {
    changes.removeAll { $0.path == path || $0.path == other }
    changes.append(SettingChange(path: path, value: value, variable: variable))
  }

  /// Returns the path of a file that the configuration names. A relative path begins in the folder of the
  /// configuration file.
  func resolved(_ path: String) -> String {
    path.hasPrefix("/") || folder == "." ? path : folder == "/" ? "/" + path : folder + "/" + path
  }
}
