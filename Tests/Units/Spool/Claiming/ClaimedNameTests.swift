import Glibc
import TestSupport
import Testing

@testable import Spool

/// The name under which a job is claimed, when others had its name before.
@Suite struct ClaimedNameTests {
  /// Whoever may drop a file may give it thousands of names.
  @Test func eachOfManyNamesIsNotLookedForAmongAllOthers() throws {
    let probe = Probe()
    let fixture = try Fixture(hook: probe)
    try fixture.write("new/x", "http://127.0.0.1:9/x\n")
    for number in 2...200 {
      try #require(link(fixture.files.path("new/x"), fixture.files.path("new/x~\(number)")) == 0)
    }
    let outcome = try fixture.outcome("x", secondsLater: 100)
    #expect(outcome.label == "claimed" && fixture.names("new") == [] && probe.calls.count < 10_000, "\(outcome.label)")
  }

  private let url = "https://host/a\n"

  @Test(arguments: ["partial/a", "failed/a", "hold/a", "cur/a:beta.7.00000009"])
  func aSecondJobOfANameIsNumbered(older: String) throws {
    let fixture = try Fixture()
    try fixture.write(older, "https://host/older\n")
    try writeFile(fixture.files.path("partial/a.part"), [1])
    try fixture.files.drop("a", url)
    let claim = try fixture.claim("a")
    #expect(claim.job.display == "a~2")
    #expect(try fixture.text(older) == "https://host/older\n")
    #expect(fixture.names("cur").contains("a~2:alpha.42.00000001"))
    try fixture.files.drop("a", url)
    try claim.park(until: .now())
    #expect(try fixture.claim("a").job.display == "a~3")
  }

  /// By one name in `cur/`, each of the two claims would move and rename the other's file.
  @Test(arguments: ["a", "a~2"])
  func aClaimWhoseFileIsRemovedKeepsItsName(name: String) throws {
    let fixture = try Fixture()
    if name == "a~2" { try fixture.write("failed/a", "") }
    try fixture.files.drop("a", url)
    var removed: Claim? = try fixture.claim("a")
    #expect(removed?.job.display == name)
    try fixture.remove("cur/\(name):alpha.42.00000001")
    try fixture.files.drop("a", url)
    if name == "a" {
      #expect(try fixture.outcome("a").label == "unavailable")
    } else {
      #expect(try fixture.claim("a").job.display == "a~3")
      try fixture.files.drop("a", url)
    }
    #expect(throws: (any Error).self) { try removed?.finish() }
    #expect(fixture.names("done") == [])
    removed = nil
    #expect(try fixture.claim("a").job.display == name)
  }

  /// The number that a name has is replaced, also where it was part of the name.
  @Test func aNumberedNameIsNotNumberedTwice() throws {
    let fixture = try Fixture()
    try fixture.write("failed/a~2", url)
    var claims: [Claim] = []
    for expected in ["a~3", "a~4"] {
      try fixture.files.drop("a~2", url)
      claims.append(try fixture.claim("a~2"))
      #expect(claims.last?.job.display == expected)
    }
    #expect(try Drops(fixture.spool).drop(url, as: jobName("a~2")).name.display == "a~2")
    #expect(try Drops(fixture.spool).drop(url, as: jobName("a~2")).name.display == "a~5")
  }

  /// However many jobs had a name, the next one gets another, with few looks: neither a dropper nor cron ends a worker.
  @Test(arguments: ["a", String(repeating: "n", count: 180)])
  func aThousandJobsOfAName(name: String) throws {
    let hook = Probe()
    let fixture = try Fixture(hook: hook)
    let job = try jobName(name)
    try fixture.write("failed/\(name)", "")
    for number in 2...1000 { try fixture.write("failed/\(job.numbered(number).display)", "") }
    try fixture.files.drop(name, "sise: 1\n")
    let before = hook.count(.stat)
    let rejected = try #require(try fixture.outcome(name).rejectedName)
    #expect(rejected.bytes.count <= 180 && fixture.names("failed").count == 1001)
    #expect(try fixture.text("failed/\(rejected.display)").hasPrefix("sise: 1\nfailed: "))
    try fixture.files.drop(name, url)
    let claim = try fixture.claim(name)
    #expect(claim.job != job && fixture.names("new") == [])
    #expect(hook.count(.stat) - before < 3000)
    // Its name is as good as any.
    try claim.park(until: .now())
    let again = try fixture.claim(claim.job.display, from: .partial)
    #expect(again.job == claim.job)
    try again.finish()
    #expect(fixture.names("done") == [claim.job.display])
    #expect(try Drops(fixture.spool).drop(url, as: claim.job).name == claim.job)
  }

  /// `mv cur/a:* hold/` leaves the owner's suffix on. Only the job's own journal tells it from a name with a colon.
  @Test(arguments: ["alpha.42.00000001", "beta.7.00000009"])
  func theOwnersSuffixIsNoPartOfAName(worker: String) throws {
    let fixture = try Fixture()
    let journal = "started: 2026-11-21T03:00:00Z attempt=1 worker=\(worker) boot=b mirror=1 url=https://host/x\n"
    try fixture.files.drop("a:beta.7.00000009", url + journal)
    let wasClaimed = worker == "beta.7.00000009"
    #expect(try fixture.claim("a:beta.7.00000009").job.display == (wasClaimed ? "a" : "a:beta.7.00000009"))
  }

  /// `mv cur/x:OWNER hold/` keeps the job and its data; another of its name goes by a number.
  @Test func dataOfAJobThatIsHeldWithItsOwnersSuffix() throws {
    let fixture = try Fixture()
    try fixture.write("hold/x:beta.1.00000009", "https://host/a\n")
    try writeFile(fixture.files.path("partial/x.part"), [1, 2, 3])
    try fixture.files.drop("x", "https://host/b\n")
    #expect(try fixture.claim("x").job.display == "x~2")
    // And one that bears the suffix in new/ leaves the name to whoever has it there.
    try fixture.files.drop("y", "https://host/b\n")
    try writeFile(fixture.files.path("partial/y.part"), [1, 2, 3])
    try fixture.files.drop(
      "y:beta.1.00000009",
      "https://host/a\n"
        + "started: 2026-01-02T03:04:05Z attempt=1 worker=beta.1.00000009 boot=b mirror=1 url=https://host/a\n"
    )
    #expect(try fixture.claim("y:beta.1.00000009").job.display == "y~2")
  }
}
