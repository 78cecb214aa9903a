import TestSupport
import Testing
import Transfer

@testable import Spool
@testable import SpoolWorker

/// Of two jobs of one name, only one has the data.
@Suite struct NamesakeTests {
  @Test func `the data of a namesake that waits is not taken`() throws {
    try WorkerLoop.alone { try await Self.recover() }
  }

  @WorkerLoop private static func recover() async throws {
    let fixture = try Fixture()
    try fixture.drop("http://127.0.0.1:9/a\n", as: "a")
    let claim = try fixture.claim("a")
    // While this job waited for its hook, another worker claimed a second one, and was stopped.
    try fixture.write("partial/a", "http://127.0.0.1:9/other\n")
    try writeFile(fixture.files.path("partial/a.part"), [1, 2, 3])
    let plan = try JobPlan(claim.text.request, protocols: [.http])
    let environment = try JobEnvironment(fixture.spool, WorkerOptions()) { _ in }
    let data = try await DataRecovery(claim: claim, plan: plan, environment: environment).run().data
    data.leaveSpace()
    try data.part.close()
    #expect(claim.job.display == "a~2" && data.part.length == 0)
    #expect(try fixture.bytes("partial/a.part") == [1, 2, 3])
  }
}
