"""Run by bench_queue with Label Studio's own interpreter: a project of the wanted size, people with tokens.

Label Studio's tables are filled through its models, in bulk, in the state that its pages would
leave: tasks with three finished annotations are labelled. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import label_studio

# Its modules import one another by their top-level names.
sys.path.insert(0, str(Path(label_studio.__file__).parent))

import django

django.setup()

from django.db import connection
from organizations.models import Organization
from projects.models import Project
from rest_framework.authtoken.models import Token
from tasks.models import Annotation, Task
from users.models import User

CONFIG = """
<View>
  <Image name="image" value="$image"/>
  <Header value="$text"/>
  <Choices name="verdict" toName="image" choice="single">
    <Choice value="accept"/><Choice value="reject"/><Choice value="unsure"/>
  </Choices>
</View>
"""
WANTED = 3
PART = 5000


def make_people(count: int) -> list[User]:
    """Members of one organisation, each with a token."""
    users = [
        User.objects.create(email=f"load{i}@bench.test", username=f"load{i}") for i in range(count)
    ]
    organization = Organization.create_organization(created_by=users[0], title="Bench")
    for user in users:
        organization.add_user(user)
        user.active_organization = organization
        user.save()
        Token.objects.get_or_create(user=user)
    organization.jwt.legacy_api_tokens_enabled = True
    organization.jwt.save()
    return users


def make_tasks(project: Project, count: int, judgements: int, people: list[User]) -> None:
    """Image tasks; the first ones have all their annotations."""
    done = judgements // WANTED
    for start in range(0, count, PART):
        tasks = Task.objects.bulk_create(
            Task(
                project=project,
                data={"image": f"/data/{i}.jpg", "text": f"{i} red apples on a plate"},
                inner_id=i + 1,
                overlap=WANTED,
                is_labeled=i < done,
                total_annotations=WANTED if i < done else 0,
            )
            for i in range(start, min(start + PART, count))
        )
        Annotation.objects.bulk_create(
            Annotation(
                task=task,
                project=project,
                completed_by=people[k],
                result=verdict("accept" if k else "reject"),
                result_count=1,
            )
            for task in tasks
            if task.is_labeled
            for k in range(WANTED)
        )


def verdict(choice: str) -> list[dict[str, object]]:
    """One answer in Label Studio's form."""
    return [
        {
            "from_name": "verdict",
            "to_name": "image",
            "type": "choices",
            "value": {"choices": [choice]},
        }
    ]


def main() -> None:
    """Make the world."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, required=True)
    parser.add_argument("--judgements", type=int, required=True)
    parser.add_argument("--people", type=int, default=64)
    given = parser.parse_args()
    people = make_people(given.people + WANTED)
    project = Project.objects.create(
        title="Bench",
        label_config=CONFIG,
        organization=people[0].active_organization,
        created_by=people[0],
        maximum_annotations=WANTED,
        is_published=True,
    )
    make_tasks(project, given.tasks, given.judgements, people[-WANTED:])
    with connection.cursor() as cursor:
        cursor.execute("vacuum analyze")
    tokens = [Token.objects.get(user=user).key for user in people[: given.people]]
    print(json.dumps({"project": project.pk, "items": given.tasks, "sessions": tokens}))


if __name__ == "__main__":
    main()
