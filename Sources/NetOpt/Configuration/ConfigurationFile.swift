import NetOptCore
import NetOptRouting

/// A configuration that was read from the bytes of a file and from environment variables, and its faults.
package struct ConfigurationFile: Sendable {
  /// The maximum size of the file in bytes: 1 MiB.
  package static let maximumBytes = 1 << 20
  /// The version of the format that this program reads.
  private static let version: Int64 = 1

  /// The configuration. Incomplete if there are faults.
  package private(set) var configuration = ClientConfiguration()
  /// The first 100 faults, in the order in which they were found.
  package let faults: [SettingFault]
  /// The number of all faults.
  package let faultCount: Int
  /// The settings that differ from their defaults.
  package let changes: [SettingChange]

  /// Reads a configuration.
  ///
  /// - Parameters:
  ///   - bytes: the JSON text. More than `maximumBytes` are a fault.
  ///   - folder: the folder in which relative paths of the file begin; `.` for the working directory.
  ///   - environment: the environment variables by name.
  package init(_ bytes: [UInt8], folder: String, environment: [String: String]) {
    let report = SettingReport(folder: folder, environment: environment)
    if let root = Self.root(bytes, report), let object = SettingObject(root) {
      Self.checkVersion(object)
      configuration.read(object)
      object.finish()
    }
    configuration.read(variables: report)
    if report.faultCount == 0 { configuration.checkWithoutFiles(report) }
    faults = report.faults
    faultCount = report.faultCount
    changes = report.changes
  }

  /// Parses the text. Reports keys that an object has twice, and returns `nil` if the text is not JSON.
  private static func root(_ bytes: [UInt8], _ report: SettingReport) -> SettingValue? {
    guard bytes.count <= maximumBytes else {
      report.refuse("$", "is larger than \(maximumBytes >> 20) MiB")
      return nil
    }
    var faults = FaultReport()
    let document = JSONDocument.read(bytes, &faults)
    for fault in faults.faults { report.refuse(fault.path, fault.message) }
    return document.map { SettingValue($0.root, JSONPath(), report) }
  }

  private static func checkVersion(_ object: SettingObject) {
    object.require("schema_version")
    guard let value = object.member("schema_version"), let number = value.integer("\(version)"),
      number != version
    else { return }
    value.refuse("is \(number); this version of netopt reads version \(version)")
  }
}

extension ClientConfiguration {
  /// Runs those checks of the client that read no files.
  fileprivate func checkWithoutFiles(_ report: SettingReport) {
    do throws(NetOptError) { _ = try checked() } catch { report.refuse("$", error.message) }
    var tls = tls.withoutFiles
    tls.hosts = tls.hosts.mapValues(\.withoutFiles)
    do throws(NetOptError) { _ = try LoadedTLS(tls) } catch { report.refuse("$.tls", error.message) }
  }
}

extension ClientConfiguration.TLS {
  /// The settings without those that name files.
  fileprivate var withoutFiles: Self {
    var settings = self
    (settings.caFile, settings.revocationFile, settings.clientCertificate) = (nil, nil, nil)
    return settings
  }
}
