@testable import NetOptEngine

extension HostTLS {
  /// The default settings, without authorities. The same object each time; nothing changes it.
  nonisolated(unsafe) static let plain = HostTLS(TLSSettings(), pins: [])
}
