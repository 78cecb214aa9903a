internal import ArgumentParser
internal import Spool
internal import SpoolWorker
internal import Transfer

struct Relink: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "url", abstract: "Gives a job another URL.",
    discussion: """
      For a link that has expired. The job may wait, run, be paused or have failed; unless it is paused, it starts \
      again, with its full number of attempts. It continues from its data if the new URL leads to the same file as \
      far as can be seen, and otherwise fetches the whole file. Several URLs are mirrors.
      """)

  @OptionGroup var spool: SpoolOption

  @Flag(help: "The new URL leads to the same file: continue from the data if size and validator are the same.")
  var same = false

  @Flag(name: .shortAndLong, help: "Print the move.") var verbose = false

  @Argument(
    help: ArgumentHelp("The job, as name, its beginning, directory/name or the path of its file.", valueName: "name"),
    completion: JobNameCompletion.kind) var name: String

  @Argument(help: ArgumentHelp("The new URL; several are mirrors.", valueName: "url")) var urls: [String]

  func run() throws {
    try NamedSpool.refuse(among: [name], of: "url", self.spool)
    let parts = try GivenJob.checked(by: "url") { try GivenJob.parts(of: urls) }
    let job = try MeantJobs.by([name], in: try spool.openAll(), Gesture.cancel.sources, isOne: true)[0]
    try AllowedSchemes(of: job.spool).check(urls)
    let relinking = Relinking(to: urls, shownURL: parts[0].redacted, isSame: same) { JobPlan.output(of: $0) }
    let outcome = try ExitStatus.reporting("url") {
      let outcome = try Steering(job.spool).relink(job.names[0], in: job.directory, relinking)
      if case .relinked(_, let place) = outcome, place.directory != .hold { try MissingWorker.tell(of: job.spool) }
      return outcome
    }
    try tell(outcome)
  }

  private func tell(_ outcome: RelinkOutcome) throws {
    switch outcome {
    case .relinked(let from, let to):
      if verbose {
        Terminal.print("\(from.display) -> \(to.display)")
      } else {
        Terminal.say("\(to.display) has the new URL")
      }
      return
    case .refused(let place, let reason): Terminal.error("\(place.display): \(reason); nothing is changed")
    case .ambiguous(let places): Terminal.error(GestureReport.ambiguous(escaped(name), places))
    case .taken(let place, let other):
      Terminal.error("\(place.display) cannot be changed: \(other.display) has the same name")
    case .notFound(let elsewhere):
      let place = elsewhere.map { ": it is \($0.display)" } ?? ": no such job"
      Terminal.error("\(escaped(name))\(place); nothing is changed")
    }
    throw ExitStatus.givenUp.code
  }
}
