package import NetOptCore

/// The rules for replacing one list with another.
package enum ListAcceptance {
  /// Whether the last good copy of a list replaces the configured list. It does so when the configured list
  /// names a refresh URL and the copy is a later issue. A configured list without a refresh URL is maintained
  /// by hand and is used as it is. At equal serials the configured list is used too.
  package static func prefersCopy(_ copy: EndpointList, to configured: EndpointList) -> Bool {
    configured.refresh != nil && copy.serial > configured.serial
  }

  /// Whether a fetched list is a later issue than the list in use.
  ///
  /// - Parameter source: where the fetched list came from, for the error message.
  /// - Returns: false when the fetched list is the list in use.
  /// - Throws: `invalidList` when the fetched list is an older issue, or another list with the same serial.
  ///   An attacker who can bring back an old list can bring back addresses that belong to somebody else by
  ///   now.
  package static func isNewer(
    _ fetched: EndpointList, than current: EndpointList, from source: String
  ) throws(NetOptError) -> Bool {
    if fetched.serial > current.serial { return true }
    if fetched == current { return false }
    guard fetched.serial == current.serial else {
      throw NetOptError(
        .invalidList, phase: .list,
        "\(source): $.serial: is \(fetched.serial), but the list in use has \(current.serial); netopt accepts no older list: issue it with a higher serial"
      )
    }
    throw NetOptError(
      .invalidList, phase: .list,
      "\(source): $.serial: is \(fetched.serial) as in the list in use, but the contents differ; issue the list with a higher serial"
    )
  }
}
