import NetOpt
import NetOptCore

/// The report of `netopt config check`.
struct ConfigReport: Sendable {
  private let file: String
  /// The settings that differ from their defaults. Empty if there are faults or the file could not be read.
  private let changes: [SettingChange]
  /// The first faults. If the file itself has no fault, those of the files that it names.
  private let faults: [SettingFault]
  /// The number of all faults.
  let faultCount: Int
  /// Why the file could not be read; `nil` if it was read.
  private let error: NetOptError?

  /// Creates the report of a configuration. Reads the files that a valid configuration names.
  init(file: String, _ configuration: ConfigurationFile) {
    self.file = file
    error = nil
    if configuration.faultCount > 0 {
      (faults, faultCount) = (configuration.faults, configuration.faultCount)
    } else {
      faults = configuration.configuration.fileFaults().map { fault in
        // The file need not have a setting that a variable has set.
        let variable = configuration.changes.first { change in
          change.variable != nil && (change.path == fault.path || change.path.hasPrefix(fault.path + "."))
        }?.variable
        return SettingFault(variable ?? fault.path, fault.message)
      }
      faultCount = faults.count
    }
    changes = faults.isEmpty ? configuration.changes : []
  }

  /// Creates the report of a file that could not be read.
  init(file: String, error: NetOptError) {
    self.file = file
    (changes, faults, faultCount) = ([], [], 0)
    self.error = error
  }

  /// The name of the file in text output: "standard input" for `-`.
  var name: String { file == "-" ? "standard input" : file }
  /// Whether the file was read and has no faults.
  var isValid: Bool { error == nil && faultCount == 0 }

  /// The object that `config check --json` prints: docs/schemas/config-check.schema.json.
  var json: JSONValue {
    var json: JSONValue = [
      "schema_version": 1, "file": .string(file), "valid": .bool(isValid),
      "settings": .array(
        changes.map { ["path": .string($0.path), "value": $0.value, "variable": .optional($0.variable)] }),
      "fault_count": .integer(Int64(faultCount)),
      "faults": .array(faults.map { ["path": .string($0.path), "message": .string($0.message)] }),
    ]
    if let error { json.append("error", error.json) }
    return json
  }

  /// The report as text. If the configuration is valid, it has the settings that differ from their defaults.
  /// Otherwise it has a line for each of the first faults, and one with the number of the others. It is empty if
  /// the file could not be read.
  var text: String {
    guard isValid else {
      var lines = faults.map { Text.printable("\(name): \($0)") }
      if faultCount > faults.count { lines.append("\(name): and \(faultCount - faults.count) more faults") }
      return Text.lines(lines)
    }
    if changes.isEmpty { return Text.lines(["\(name): valid; all settings have their defaults"]) }
    let width = changes.map(\.path.count).max() ?? 0
    return Text.lines(
      ["\(name): valid; these settings differ from their defaults:"]
        + changes.map { change in
          let source = change.variable.map { " (from \($0))" } ?? ""
          return Text.printable("  \(Text.left(change.path, width))  \(change.value)\(source)")
        })
  }
}
