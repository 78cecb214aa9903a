internal import ArgumentParser
internal import Glibc

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
    let commands = Spoolrun.commandNames
    let given = Prioritise.spelled(
      in: LeadingSpool.moved(
        in: Array(arguments.dropFirst()), commands: commands + [Prioritise.otherSpelling]))
    DashedName.refuse(in: given)
    if let complaint = Suggestion.complaint(about: given, commands: commands) {
      Terminal.error(complaint)
      exit(ExitStatus.usage.rawValue)
    }
    // Returns only on success. Otherwise the command has exited with its own status.
    Spoolrun.main(given)
    if Terminal.hasOutputFailed { exit(ExitStatus.inputOutput.rawValue) }
  }
}
