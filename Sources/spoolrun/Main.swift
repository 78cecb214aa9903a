internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolWorker
internal import SystemPackage

@main
enum Main {
  static func main() {
    Terminal.openMissing()
    let arguments = RawArguments.all.map { String(decoding: $0, as: UTF8.self) }
    // No arguments means the default command, which downloads. It must not start by accident.
    guard !arguments.isEmpty else {
      Terminal.error("started with an empty argument list, without a program name (see execve(2)); doing nothing")
      exit(ExitStatus.usage.rawValue)
    }
    UnreadableText.refuse(in: Array(RawArguments.all.dropFirst()))
    let commands = Spoolrun.commandNames
    let given = Prioritise.spelled(
      in: LeadingSpool.moved(
        in: Array(arguments.dropFirst()), commands: commands + [Prioritise.otherSpelling]))
    DashedName.refuse(in: given)
    if let script = CompletionScript.asked(given) { return Terminal.print(script) }
    if let complaint = Suggestion.complaint(about: given, commands: commands) {
      Terminal.error(complaint)
      exit(ExitStatus.usage.rawValue)
    }
    // Returns only on success. Otherwise the command has exited with its own status.
    if let run = defaultCommand(given, commands) { perform(run) } else { Spoolrun.main(given) }
    if Terminal.hasOutputFailed { exit(ExitStatus.inputOutput.rawValue) }
  }

  /// The default command with these arguments; nil for any other command, and for anything wrong. The parser takes half
  /// as long without the other commands, and cron starts this one each minute.
  private static func defaultCommand(_ arguments: [String], _ commands: [String]) -> Run? {
    guard !arguments.contains(where: { commands.contains($0) }) else { return nil }
    // What is wrong is said with all commands in view.
    return try? Run.parseAsRoot(arguments) as? Run
  }

  private static func perform(_ command: Run) {
    do { try command.run() } catch { Spoolrun.exit(withError: error) }
  }
}

struct Spoolrun: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "spoolrun",
    abstract: "Downloads the files whose URLs are dropped into a spool directory.",
    discussion: """
      One file, now, into the current directory:

        spoolrun get https://host/a.bin

      A job is a text file with a URL in it. Drop it into SPOOL/new:

        spoolrun init spool
        printf 'https://host/a.bin\\n' > spool/new/a
        spoolrun --once spool

      The downloaded file is then in spool/files, and the job with its receipt in spool/done. A job that was given up \
      is in spool/failed with the reason: `spoolrun status` shows it, and `spoolrun retry --failed` tries it again. \
      The state of each job is the directory it is in: see it with ls, change it with mv and rm (spool(5)).

      Exit status: 0 all due jobs are done; 1 a job was given up; 75 jobs wait for another attempt; \
      64 usage error; 66 no such spool; 69 no libcurl; 73 cannot create; 74 input/output error; 78 configuration error.
      """,
    version: "0.3.0",
    subcommands: [
      Get.self, Run.self, Init.self, Doctor.self, Add.self, Subscribe.self, Verify.self, Status.self, Report.self,
      Hold.self, Release.self,
      Retry.self, Prioritise.self, Cancel.self, Relink.self, Clean.self,
    ],
    defaultSubcommand: Run.self)

  /// Each command states its name: to derive it from its type takes a tenth of an idle run.
  static var commandNames: [String] { configuration.subcommands.map { $0._commandName } + ["help"] }
}

/// The exit statuses of spoolrun(1). Those from 64 on are from sysexits(3).
///
/// A command that throws one of these codes has said why on standard error.
enum ExitStatus: Int32 {
  case success = 0
  case givenUp = 1
  case usage = 64
  case noSpool = 66
  case unavailable = 69
  case cannotCreate = 73
  case inputOutput = 74
  case waiting = 75
  case configuration = 78

  var code: ExitCode { ExitCode(rawValue) }

  /// The worst outcome of a run. From the worst: nothing can be fetched at all, the spool fails, a job was given up, a
  /// job waits.
  /// - Parameter kind: the type of the spool's file system.
  init(_ summary: RunSummary, on kind: FileSystemKind) {
    if summary.obstacle != nil {
      self = .unavailable
    } else if let error = summary.spoolError {
      self = ExitStatus(error, on: kind)
    } else if summary.givenUp > 0 {
      self = .givenUp
    } else if summary.waiting > 0 {
      self = .waiting
    } else {
      self = .success
    }
  }

  /// Of a worker: a file system that cannot be reached may be mounted again.
  init(_ error: SpoolError, on kind: FileSystemKind) {
    self = error.isOfLostMount(on: kind) ? .waiting : ExitStatus(error)
  }

  init(_ error: SpoolError) {
    switch (error.call, error.errno) {
    // A failing disk has one status, whichever call finds it first.
    case (_, .ioError): self = .inputOutput
    case (.create, _), (.mkdir, _): self = .cannotCreate
    default: self = .inputOutput
    }
  }

  /// Says that an error has ended a command.
  static func failure(_ error: SpoolError, _ what: String) -> any Error {
    Terminal.error("\(what): \(error)")
    return ExitStatus(error).code
  }

  /// Says what is wrong with a command's arguments. A `ValidationError` from outside of `validate()` would come with
  /// the usage of `spoolrun`, not that of the command.
  static func refusal(_ reason: String, by command: String) -> any Error {
    Terminal.error("\(reason); see `spoolrun \(command) --help`")
    return usage.code
  }
}
