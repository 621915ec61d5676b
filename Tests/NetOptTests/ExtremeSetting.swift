import NetOptCore
import NetOptTestSupport
import TestTools

@testable import NetOpt

/// A setting of `ClientConfiguration` that is an integer or a duration, and the extreme values that tests
/// give it.
struct ExtremeSetting: Sendable {
  /// The setting's path in the configuration, such as `connections.bodyBuffer`.
  let name: String
  /// The number of extreme values.
  let count: Int
  /// Gives the setting an extreme value in a configuration. The integer is the index of the value, from 0 to
  /// `count` - 1.
  let set: @Sendable (inout ClientConfiguration, Int) -> Void

  /// A setting that is an integer. `set` gives it a value in a configuration.
  private static func integer(
    _ name: String, _ set: @escaping @Sendable (inout ClientConfiguration, Int) -> Void
  ) -> ExtremeSetting {
    let values = ExtremeNumbers.integers
    return ExtremeSetting(name: name, count: values.count) { set(&$0, values[$1]) }
  }

  /// A setting that is a duration. `set` gives it a value in a configuration.
  private static func duration(
    _ name: String, _ set: @escaping @Sendable (inout ClientConfiguration, Duration) -> Void
  ) -> ExtremeSetting {
    let values = ExtremeNumbers.durations
    return ExtremeSetting(name: name, count: values.count) { set(&$0, values[$1]) }
  }

  /// All settings of `ClientConfiguration` that are integers or durations.
  /// `ExtremeConfigurationTests.everyNumberIsTried` checks that none is missing.
  static let all = [
    duration("probing.budget") { $0.probing.budget = $1 },
    integer("probing.concurrency") { $0.probing.concurrency = $1 },
    duration("probing.firstRequestWait") { $0.probing.firstRequestWait = $1 },
    duration("dns.timeout") { $0.dns.timeout = $1 },
    integer("dns.tries") { $0.dns.tries = $1 },
    integer("connections.perEndpoint") { $0.connections.perEndpoint = $1 },
    integer("connections.total") { $0.connections.total = $1 },
    integer("connections.idle") { $0.connections.idle = $1 },
    duration("connections.idleAge") { $0.connections.idleAge = $1 },
    duration("connections.lifetime") { $0.connections.lifetime = $1 },
    integer("connections.bodyBuffer") { $0.connections.bodyBuffer = $1 },
    integer("cache.maxBytes") { $0.cache?.maxBytes = $1 },
    integer("cache.maxDiskBytes") { $0.cache?.maxDiskBytes = $1 },
    duration("cache.maxAge") { $0.cache?.maxAge = $1 },
    integer("cache.maxEntryBytes") { $0.cache?.maxEntryBytes = $1 },
    integer("cache.maxPendingBytes") { $0.cache?.maxPendingBytes = $1 },
    duration("defaults.timeout") { $0.defaults.timeout = $1 },
    duration("cache.staleWhenUnreachable") { $0.cache?.staleWhenUnreachable = $1 },
  ]

  /// The paths of all numbers and durations in a value and in the structures that it contains, such as
  /// `connections.bodyBuffer`.
  ///
  /// - Parameter path: the path of `value` itself, which ends with a dot; empty for the whole configuration.
  static func numbers(in value: Any, _ path: String = "") -> [String] {
    Mirror(reflecting: value).children.flatMap { child -> [String] in
      let name = path + (child.label ?? "")
      switch child.value {
      case is any BinaryInteger, is any BinaryFloatingPoint, is Duration: return [name]
      default: break
      }
      let mirror = Mirror(reflecting: child.value)
      if mirror.subjectType == Duration?.self || mirror.subjectType == Int?.self { return [name] }
      if mirror.displayStyle == .optional, let some = mirror.children.first?.value {
        return numbers(in: some, name + ".")
      }
      return mirror.displayStyle == .struct ? numbers(in: child.value, name + ".") : []
    }
  }
}
