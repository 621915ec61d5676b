import NetOptCore
import NetOptTestSupport
import TestTools

/// Sends a cell's requests with curl(1): one process for each request, or one process for all concurrent
/// requests. curl gets the same addresses and the same deadline as netopt, and does not retry.
struct CurlCaller: Caller {
  let cell: Cell
  let site: Site
  /// The server that was in use during netopt's calls; curl gets its address first.
  let victim: FaultyOrigin

  var lanes: Int { 1 }

  func perform(_ prefix: String) async throws -> [Call] {
    let directory = try TemporaryDirectory.make("curl")
    let ids = (0..<cell.concurrency).map { "\(prefix)c\($0)" }
    let transfers = try ids.map { try transfer($0, in: directory) }
    try TextFile.write(transfers.joined(separator: "next\n"), to: directory + "/transfers")
    let began = SystemTimeSource().now()
    let process = try ChildProcess(
      "curl",
      ["-q", "--parallel", "--parallel-immediate", "--parallel-max", "50", "-K", directory + "/transfers"],
      in: directory)
    try await wait(for: "curl to end") { process.exitStatus() != nil }
    // curl prints how long a transfer took, but not when the transfer began. So each call gets the start and
    // the end of the process.
    return Self.calls(
      ids, began: began, ended: SystemTimeSource().now(), output: TextFile.read(process.output))
  }

  /// Returns the lines for one transfer in a configuration file of curl (curl(1), `--config`). Writes the
  /// body of the request, if there is one, to a file.
  ///
  /// - Parameters:
  ///   - id: the id of the request.
  ///   - directory: the directory for the file with the body.
  private func transfer(_ id: String, in directory: String) throws -> String {
    // The addresses have the format of --resolve: IPv6 in brackets.
    let addresses = site.addresses(for: cell.fault, victim: victim).map { address in
      let text = "\(address)"
      return text.contains(":") ? "[\(text)]" : text
    }
    var lines = [
      "url = \"\(site.url(cell.traffic, id))\"", "output = \"/dev/null\"", "silent",
      "resolve = \"\(Site.host):\(site.port):\(addresses.joined(separator: ","))\"",
      "cacert = \"\(site.authorityFile)\"", "max-time = \(Double(Duration.deadline.nanoseconds) / 1e9)",
      cell.version == .http2 ? "http2" : "http1.1", "noproxy = \"*\"",
      #"write-out = "call \#(id) %{exitcode} %{http_code} %{time_total} %{errormsg}\n""#,
    ]
    if case .proxy = cell.fault.location {
      lines.removeAll { $0.hasPrefix("noproxy") }
      lines.append("proxy = \"http://\(site.proxyEndpoint)\"")
    }
    let file = "\(directory)/\(id)"
    if cell.traffic.uploadSize > 0 {
      try TextFile.write(Content.pattern(id, cell.traffic.uploadSize), to: file)
    }
    switch cell.traffic {
    case .get, .down: break
    case .post: lines.append("data-binary = \"@\(file)\"")
    case .keyedPost: lines += ["data-binary = \"@\(file)\"", "header = \"Idempotency-Key: \(id)\""]
    case .up:
      lines += ["upload-file = \"\(file)\"", "request = \"POST\"", "header = \"Transfer-Encoding: chunked\""]
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Parses curl's output about its transfers. A transfer without output has failed.
  private static func calls(_ ids: [String], began: MonotonicInstant, ended: MonotonicInstant, output: String)
    -> [Call]
  {
    var calls: [String: Call] = [:]
    for line in output.split(separator: "\n") where line.hasPrefix("call ") {
      let words = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: false).map(String.init)
      guard words.count == 6, let seconds = Double(words[4]) else { continue }
      let isAnswered = words[2] == "0" && words[3] == "200"
      calls[words[1]] = Call(
        id: words[1], began: began, ended: ended, time: .nanoseconds(Int64(seconds * 1e9)),
        outcome: isAnswered
          ? .answered(by: nil) : .failed(Call.Failure(code: words[2], message: "\(words[3]) \(words[5])")))
    }
    return ids.map { id in
      calls[id]
        ?? Call(
          id: id, began: began, ended: ended,
          outcome: .failed(Call.Failure(code: "-", message: "curl said nothing: \(output)")))
    }
  }
}
