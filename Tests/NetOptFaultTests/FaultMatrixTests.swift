import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Runs a sample of the fault matrix (docs/reliability.md) with the program `netopt-faults`. Each cell of the
/// matrix combines a fault with a kind of request, a number of concurrent requests and an HTTP version. A
/// violation is a case in which netopt breaks a rule of the matrix (`CellJudge`).
///
/// If this process may create network namespaces, two processes share the cells, each in its own namespace.
/// Otherwise one process runs all cells, and the sample leaves out the faults that need a namespace.
@Suite struct FaultMatrixTests {
  @Test(
    "a sample of 40 cells of the fault matrix has no violations")
  func cells() async throws {
    let directory = try TemporaryDirectory.make("faults")
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    // The program is in the same folder as the program of the tests.
    let program = FileBytes.folder(of: tests) + "/netopt-faults"
    let shared = NetworkNamespace.isAvailable ? ["--jobs", "2"] : []
    let matrix = try ChildProcess(program, ["--sample", "40", "--short"] + shared, in: directory)
    try await wait(for: "the cells to be run", within: .seconds(600)) { matrix.exitStatus() != nil }
    let output = TextFile.read(matrix.output)
    #expect(matrix.exitStatus() == 0, "\(output)")
    // Guards against a run that tests nothing.
    #expect(output.contains("\n40 cells, 0 with violations"), "\(output)")
  }
}
