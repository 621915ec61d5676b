extension RequestPlan: CustomStringConvertible {
  /// The index, the method, host, target and client of the request, and those other properties that differ
  /// from the defaults.
  package var description: String {
    var words = ["request \(index): \(method) \(host.scheme.rawValue)://\(host.name) (\(host.port) port)"]
    words.append("\(answer.target) by client \(client)")
    if upload != .none { words.append("upload \(upload)") }
    if version != .automatic { words.append("\(version)") }
    if connection != .pooled { words.append("\(connection)") }
    if usesDNS { words.append("by DNS") }
    if !decompresses { words.append("not decompressed") }
    if hedges { words.append("hedged") }
    if hasKey { words.append("with a key") }
    if answer.cached != nil { words.append("flavour \(flavour)") }
    if onlyIfCached { words.append("only if cached") }
    if timeout != RequestPlan.usualTimeout { words.append("timeout \(timeout) ms") }
    if let cancellation { words.append("cancelled \(cancellation)") }
    if reading != .asItComes { words.append("read \(reading)") }
    return words.joined(separator: ", ")
  }
}
