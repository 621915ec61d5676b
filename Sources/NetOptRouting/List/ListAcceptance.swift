package import NetOptCore

/// The rules by which one list takes the place of another.
package enum ListAcceptance {
  /// Whether the last good copy of a list is used in place of the configured one: when the configured list says where
  /// newer issues are found, and the copy is one. Without that the list is kept by hand and used as it is; at equal
  /// serials too.
  package static func prefersCopy(_ copy: EndpointList, to configured: EndpointList) -> Bool {
    configured.refresh != nil && copy.serial > configured.serial
  }

  /// Whether a list that was fetched is a later issue than the one in use.
  ///
  /// - Parameter source: where it came from, for the error.
  /// - Returns: false when it is the one in use.
  /// - Throws: `invalidList` when it is an older issue, or another list under the same number: who can bring back an
  ///   old list, can bring back addresses that somebody else has by now.
  package static func isNewer(
    _ fetched: EndpointList, than current: EndpointList, from source: String
  ) throws(NetOptError) -> Bool {
    if fetched.serial > current.serial { return true }
    if fetched == current { return false }
    guard fetched.serial == current.serial else {
      throw NetOptError(
        .invalidList, phase: .list,
        "\(source): $.serial: is \(fetched.serial), and \(current.serial) is in use; a list does not go back: issue it with a higher serial"
      )
    }
    throw NetOptError(
      .invalidList, phase: .list,
      "\(source): $.serial: is \(fetched.serial) as in the list in use, but the list is another one; issue it with a higher serial"
    )
  }
}
