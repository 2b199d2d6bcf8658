"""Whether the words around a box plainly state that it is the answer.

Between the verb and the box only words of a short list may stand, and the words before the verb
must not doubt or deny. No text after the box may take it back. An unknown phrase counts as a
denial.
"""

from __future__ import annotations

import re


def _any_of(words: str, more: str = "") -> re.Pattern[str]:
    """A pattern for words and phrases, separated by bars or line breaks, in any case."""
    choices = "|".join(word.strip() for word in re.split(r"[|\n]", words) if word.strip())
    return re.compile(rf"\b(?:{choices})\b{more}", re.IGNORECASE)


_NOT = r"|n['’]t\b"
_SENTENCE_END = re.compile(r"[.!?](?=[\s$*\"')\\]|$)|(?<=[0-9.!?*)}$\]])\n")
_CLAUSE = re.compile(r"[,;](?=\s|$)|\b(?:so|therefore|thus|hence|then)\b", re.IGNORECASE)
_ANSWER_IS = re.compile(r"\banswers?\s+(?=is\b|are\b|was\b)", re.IGNORECASE)
_MODIFIER = _any_of("that|which|who|whose|where|when|with|of|such")
_VERB = _any_of(
    r"""is|are|was|(?:must|will|shall|should|to) be|total of|equals?|gets?|got|gives?|giving|obtain
    find|found|have|has|had|yields?|makes?|becomes?|remains?|leaves?|needs?|costs?|takes?|earns?
    pays?|spends?|saves?|sells?|uses?|walks?|travels?|contains?|choose|pick|select|conclude|comes
    (?:simplifies|evaluates|reduces|works out|amounts|leads|sums?) to|arrive at
    left with|given by""",
    "|[:=]",
)
_FILLER = _any_of(
    """the|a|an|just|simply|exactly|precisely|only|then|thus|therefore|hence|so|and|equal|to|also
    indeed|clearly|total|finally|final|answer|answers|ans|result|solution|our|my|in|conclusion
    overall|altogether|as|which|out|us|i|we|this|means|again|now"""
)
_IDIOM = _any_of(
    r"""not (?:too )?(?:hard|difficult) to \w+
    (?:may|could|would) be (?:verified|shown|seen|checked|proven)"""
)
_NEGATION = _any_of(
    """not?|none|never|neither|nor|cannot|without|hardly|scarcely|barely|rarely|might|may|could
    would|perhaps|maybe|possibly|unless|whether|if|either""",
    _NOT,
)
_REFUSAL = _any_of(
    r"""wrong(?:ly)?|incorrect(?:ly)?|refuse|doubt|never|nobody|untrue|mistaken?|impossible|myth
    false(?:ly)?|guess(?:ed)?|disagree|deny|reject(?:ed)?|asked|assum\w+|suppos\w+|pretend|lying
    rul\w+ out|exclud\w+|discard\w*|avoid\w*|ignor\w+|contradict\w*|approximately|roughly|about
    nearly|almost|nonsense|kidding|(?:fails?|refuses?) to|(?:cannot|can't|can not) be
    (?:naive|tempting|apparent|alleged|initial|previous|original) (?:answer|guess|result)
    (?:expected|common|other|his|her|their) (?:answer|guess|result)
    (?:friend|students?|some(?:one|body)?|people|he|she|they) (?:say|said|think|thought|claim)s?
    (?:friend|students?|some(?:one|body)?|people|he|she|they) (?:believe|wr[io]te)s?"""
)
_CHANGE = _any_of(
    """not?|never|than|more|less|fewer|short|off|too|or|if|unless|otherwise|wrong|incorrect|false
    plus|minus|times|squared|cubed|percent""",
    _NOT,
)
_TAKEN_BACK = _any_of(
    """wait|wrong|incorrect|mistakes?|errors?|sorry|correction|actually|instead|oops|however|hmm
    alternatively|hold on|recheck|reconsider|scratch that|should (?:be|have)|in fact|the truth
    not (?:correct|right|true|the answer)|but the answer|isn't""",
    r"|(?:^|[.!?,;\n])\s*(?:no|not|or|nope|never mind)\b",
)


def states(text: str, *, has_verb: bool) -> bool:
    """Whether the end of `text` plainly states that the answer follows.

    The last clause must contain no doubt and no negation, except in a modifier of a noun, and only
    fillers between the verb and the end. `has_verb` means that an equals sign is the verb.
    """
    *_, sentence = _SENTENCE_END.split(text.rstrip(" "))
    *_, clause = _CLAUSE.split(sentence)
    *_, said = _ANSWER_IS.split(sentence)
    if said != sentence and not _VERB.search(clause):
        clause = said
    if _REFUSAL.search(clause) or _NEGATION.search(_MODIFIER.split(_IDIOM.sub("", clause))[0]):
        return False
    zone = "" if has_verb else _VERB.split(clause)[-1]
    return all(map(_FILLER.fullmatch, re.findall(r"(?<!\\)\b[A-Za-z'’]+", zone)))


def changes(text: str) -> bool:
    """Whether the rest of a sentence may change the number before it."""
    return _CHANGE.search(text) is not None


def takes_back(text: str) -> bool:
    """Whether a text takes back the answer before it."""
    return _TAKEN_BACK.search(text) is not None
