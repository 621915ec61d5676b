import NetOptCaching
import NetOptCore
import NetOptSigning

/// What the commands about caches have in common.
enum CacheOptions {
  /// The directory of a disk cache.
  static let directory = Option(
    "cache", takes: .required("DIR"), "the directory of the cache", environment: "NETOPT_CACHE")

  /// Opens the cache that the arguments name.
  ///
  /// - Throws: `UsageError` when none is named; what `DiskInspection` throws.
  static func inspection(_ arguments: Arguments) throws -> DiskInspection {
    guard let directory = arguments.value(of: directory) else { throw UsageError("--cache DIR is missing") }
    return try DiskInspection(directory)
  }

  /// A moment for people: RFC 3339 in whole seconds.
  static func date(_ milliseconds: Int64) -> String { CivilTime(seconds: milliseconds / 1000).rfc3339 }
}
