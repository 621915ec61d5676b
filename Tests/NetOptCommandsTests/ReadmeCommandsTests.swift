import NetOpt
import NetOptTestSupport
import Testing

@testable import NetOptCommands

@Suite struct ReadmeCommandsTests {
  /// The commands in README.md: the lines of its shell blocks that begin with `netopt`, without their comments.
  private static let commands: [String] = {
    let readme = (try? RepositoryFile.text("README.md")) ?? ""
    return readme.split(separator: "\n").filter { $0.hasPrefix("netopt ") }
      .map { String($0.prefix { $0 != "#" }) }
  }()

  @Test func eachCommandIsShown() {
    for command in ["get", "probe", "bench", "iplist check", "help"] {
      #expect(Self.commands.contains { $0.hasPrefix("netopt \(command) ") })
    }
  }

  /// Each of them runs, with a client that answers without a network.
  @Test(arguments: commands)
  func itRuns(_ command: String) async {
    let arguments = command.split(separator: " ").dropFirst().map { word in
      word.hasSuffix(".json") ? RepositoryFile.path(String(word)) : String(word)
    }
    let probe = EndpointProbe(
      address: Samples.address("1.1.1.1"), rank: 1, rtt: .milliseconds(9), samples: [.milliseconds(9)],
      state: .closed, chosen: true)
    let host = HostProbe(host: "one.one.one.one", port: 443, method: .tls, endpoints: [probe])
    let client = ScriptedClient(list: .builtIn, probes: [host])
    let run = await Run(arguments, client: client)
    #expect(run.code == 0, "\(command): \(run.errors)")
  }
}
