import NetOptCaching
import NetOptCore
import NetOptSigning

/// The option and the functions that the commands `netopt cache stats`, `list`, `verify` and `clear` share.
enum CacheOptions {
  /// `--cache DIR`: the directory of the disk cache.
  static let directory = Option(
    "cache", takes: .required("DIR"), "the directory of the cache", environment: "NETOPT_CACHE")

  /// Opens the disk cache in the directory that `--cache` or else `NETOPT_CACHE` names.
  ///
  /// - Throws: `UsageError` when neither names a directory; the errors of `DiskInspection`.
  static func inspection(_ arguments: Arguments) throws -> DiskInspection {
    guard let directory = arguments.value(of: directory) else { throw UsageError("--cache DIR is missing") }
    return try DiskInspection(directory)
  }

  /// Formats a time in milliseconds since 1970 as RFC 3339, in whole seconds.
  static func date(_ milliseconds: Int64) -> String { CivilTime(seconds: milliseconds / 1000).rfc3339 }
}
