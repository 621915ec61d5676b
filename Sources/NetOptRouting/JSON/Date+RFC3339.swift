import FoundationEssentials
import NetOptCore

extension Date {
  /// Reads an RFC 3339 `date-time` with any offset and fraction; see `CivilTime.seconds(rfc3339:)`.
  init?(rfc3339 text: String) {
    guard let seconds = CivilTime.seconds(rfc3339: text) else { return nil }
    self.init(timeIntervalSince1970: seconds)
  }
}
